import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { refsBelow } from "../../src/git/refs.ts";
import { openStore } from "../../src/store/open.ts";
import { openRuns } from "../../src/store/runs.ts";
import { deleteOldRefs } from "../../src/swarm/workspace/old-refs.ts";
import { testGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";

test("what old runs put aside in a repository goes; branches, younger runs and what is not ours stay", async () => {
  const folder = temporaryFolder();
  const git = testGit();
  await git.must(folder, ["init", "-q", "-b", "main"]);
  writeFileSync(join(folder, "a.txt"), "a\n");
  await git.must(folder, ["add", "-A"]);
  await git.must(folder, ["-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-q", "-m", "a"]);
  const store = openStore(":memory:");
  onTestFinished(() => store.close());
  const runs = openRuns(store);
  const end = { status: "failed" as const, outcome: "failed" as const, reason: null };
  for (const [id, finishedAt] of [
    ["r_old", "2026-01-01"],
    ["r_young", "2026-05-01"],
  ] as const) {
    runs.create({ id, projectPath: folder, issue: "i", inputs: "{}", now: "2026-01-01" });
    runs.finish(id, { ...end, now: finishedAt });
  }
  runs.create({ id: "r_open", projectPath: folder, issue: "i", inputs: "{}", now: "2025-01-01" });
  runs.create({ id: "r_gone", projectPath: join(folder, "nowhere"), issue: "i", inputs: "{}", now: "2025-01-01" });
  const stay = [
    "refs/heads/main",
    "refs/heads/swarm/r_old",
    "refs/swarm/r_open/1",
    "refs/swarm/r_stranger/1",
    "refs/swarm/r_young/1",
  ];
  const go = ["refs/swarm/r_old/1", "refs/swarm/r_old-stream-2/3"];
  for (const ref of [...stay, ...go]) await git.must(folder, ["update-ref", ref, "HEAD"]);

  expect(await deleteOldRefs(git, runs, "2026-04-01")).toBe(go.length);
  expect(await refsBelow(git, folder, "refs/")).toEqual(stay);
});
