import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openRepo } from "../../src/git/repository.ts";
import { addWorktree } from "../../src/git/worktrees.ts";
import { testGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { makeProject } from "../support/swarm/index.ts";

test("worktrees that are wanted at the same time do not stumble over each other", { timeout: 120_000 }, async () => {
  const home = temporaryFolder();
  const project = makeProject();
  const found = (await openRepo(testGit(), project))!;
  // As two runs on one repository have it, each with its own view of git.
  const folders = ["one", "two"].map((name) => join(home, "runs", name));
  const repos = folders.map((folder) => ({ ...found, git: found.git.with({ writable: [folder] }) }));
  const added: string[] = [];
  for (let round = 0; round < 6; round += 1) {
    const wanted = Array.from({ length: 16 }, (_, index) => ({
      repo: repos[index % 2]!,
      path: join(folders[index % 2]!, "worktrees", `${round}-${index}`),
      branch: `swarm/${round}-${index}`,
    }));
    const how = await Promise.all(wanted.map(({ repo, ...tree }) => addWorktree(repo, { ...tree, base: found.head! })));
    added.push(...how);
    expect(wanted.filter(({ path }) => !existsSync(join(path, "README.md")))).toEqual([]);
  }
  expect(new Set(added)).toEqual(new Set(["made"]));
});
