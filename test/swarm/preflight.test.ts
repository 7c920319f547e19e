import { existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { git, type Harness, type HarnessOptions, startSwarm, write } from "../support/swarm/index.ts";
import { IN_PLACE, ON_BRANCH } from "../support/swarm/pipelines.ts";

const scene = (options: HarnessOptions = {}) =>
  startSwarm({ ...options, files: { "swarm.config.yaml": ON_BRANCH, ...options.files } });

const begin = (
  { swarm, project, settings }: Harness,
  more: { projectPath?: string; large?: boolean; onNote?: (text: string) => void } = {},
) => swarm.start({ projectPath: project, issue: "Greet", settings, ...more });

/** Expects that a refused run left nothing behind: no row, no folder, no ref, and no model request. */
function nothingOf({ swarm, home, project, model }: Harness, isRepository = true): void {
  expect(swarm.list()).toEqual([]);
  expect(existsSync(join(home, "runs"))).toBe(false);
  expect(model.requests).toEqual([]);
  expect(existsSync(join(project, "T1.txt"))).toBe(false);
  if (isRepository) expect(git(project, "for-each-ref", "--format=%(refname)")).toBe("refs/heads/main");
}

test("a plan that git tracks is not written over, and nobody is asked for another", async () => {
  const at = await startSwarm({ files: { "doc/plan.md": "ours\n" } });
  const planning = at.swarm.plan({ projectPath: at.project, issue: "Greet", settings: at.settings, ask: async () => null });
  await expect(planning).rejects.toThrow(
    /DOC_DIR: doc\/plan\.md: git tracks it, and documents would be written over it\. Nothing was begun/,
  );
  expect([git(at.project, "status", "--porcelain"), at.model.requests.length]).toEqual(["", 0]);
});

test("documents that git tracks are not written over: they are named, with what to set", async () => {
  const at = await scene({
    files: { "doc/engineer-stream-1.md": "mine\n", "doc/swarm-summary.md": "mine too\n", "doc/other.md": "fine\n" },
  });
  await expect(begin(at)).rejects.toThrow(
    /DOC_DIR: doc\/engineer-stream-1\.md, doc\/swarm-summary\.md: git tracks them.*DOC_DIR=doc\/swarm/s,
  );
  nothingOf(at);
  const run = await (
    await at.swarm.start({ projectPath: at.project, issue: "Greet", settings: { ...at.settings, docDir: "doc/swarm" } })
  ).finished;
  expect(run.outcome).toBe("approved");
  expect(git(at.project, "status", "--porcelain", "--untracked-files=no")).toBe("");
});

test("outside git a root, a home and what holds homes are refused", async () => {
  const at = await scene({ git: false });
  const machine = { PATH: process.env.PATH, HOME: at.project };
  const home = await startSwarm({ parts: { env: machine } });
  for (const projectPath of ["/", at.project, dirname(at.project)])
    await expect(begin(home, { projectPath })).rejects.toThrow(/home folder.* in no git repository.*git init/s);
  nothingOf(home);
});

test("outside git the size is told first, and a folder over the limit needs a yes", async () => {
  const at = await scene({ git: false, files: { "swarm.config.yaml": IN_PLACE, ".gitignore": "data/\n" } });
  writeFileSync(join(at.project, "large.bin"), "");
  truncateSync(join(at.project, "large.bin"), 600_000_000);
  await expect(begin(at)).rejects.toThrow(/in no git repository.*files, 600\.0 MB, more than 50000 files or 500\.0 MB.*--yes/s);
  nothingOf(at, false);
  truncateSync(join(at.project, "large.bin"), 1_000);
  const notes: string[] = [];
  const run = await (await begin(at, { large: true, onNote: (text) => notes.push(text) })).finished;
  expect(run.outcome).toBe("approved");
  expect(notes.join()).toMatch(/in no git repository: the work is done in place.*files, 1\.\d KB/);
});

test("what ignore files name is no part of the copy, and does not count", async () => {
  const at = await scene({
    git: false,
    files: {
      "swarm.config.yaml": IN_PLACE,
      ".gitignore": "data/\n",
      ".ignore": "*.dump\n/top.only\n",
      "sub/.ignore": "raw/\n!keep.dump\n",
      "sub/keep.dump": "kept\n",
      "sub/raw/a": "",
      "sub/top.only": "kept\n",
      "top.only": "",
      "deep/x.dump": "",
    },
  });
  mkdirSync(join(at.project, "data"));
  for (const name of ["data/huge", "deep/x.dump", "sub/raw/a", "top.only"]) {
    writeFileSync(join(at.project, name), "");
    truncateSync(join(at.project, name), 600_000_000);
  }
  const run = await (await begin(at)).finished;
  expect(run.outcome).toBe("approved");
  const shadow = join(at.home, "runs", run.id, "shadow.git");
  const kept = git(at.project, "--git-dir", shadow, "ls-files").split("\n");
  expect(kept).toEqual(expect.arrayContaining(["T1.txt", "sub/keep.dump", "sub/top.only"]));
  expect(kept.filter((name) => /huge|x\.dump|raw|^top/.test(name))).toEqual([]);
}, 120_000);

test("a folder of which the repository holds nothing is not worked on as an empty one", async () => {
  const at = await scene();
  mkdirSync(join(at.project, "fresh"));
  writeFileSync(join(at.project, "fresh", "swarm.config.yaml"), ON_BRANCH);
  await expect(begin(at, { projectPath: join(at.project, "fresh") })).rejects.toThrow(/nothing of fresh is committed.*git init/s);
  nothingOf(at);
});

test("documents of an earlier run do not stand among those of the next; what somebody changed in them is kept", async () => {
  let tasks = 2;
  const two = { "swarm.config.yaml": `pipeline:\n  - {phase: decompose, agent: pm}\n${ON_BRANCH.split("pipeline:\n")[1]}` };
  const at = await scene({
    files: two,
    script: ({ role, prompt, afterTool }) => {
      if (role === "pm")
        return {
          say: JSON.stringify(
            Array.from({ length: tasks }, (_, index) => ({ id: `T${index + 1}`, title: "x", acceptanceCriteria: ["y"] })),
          ),
        };
      return role === "engineer" && !afterTool ? write(`${/T\d/.exec(prompt)?.[0]}.txt`, "x\n") : undefined;
    },
  });
  const first = await (await begin(at)).finished;
  expect(readdirSync(join(at.project, "doc"))).toContain("engineer-stream-2.md");
  writeFileSync(join(at.project, "doc", "engineer-stream-1.md"), "my own words\n");
  writeFileSync(join(at.project, "doc", "notes.md"), "mine\n");
  tasks = 1;
  const second = await (await begin(at)).finished;
  expect([first.outcome, second.outcome]).toEqual(["approved", "approved"]);
  const names = readdirSync(join(at.project, "doc"));
  expect(names).not.toContain("engineer-stream-2.md");
  expect(names).toEqual(expect.arrayContaining(["engineer-stream-1.md", "notes.md"]));
  const kept = /engineer-stream-1\.md .*kept in (\S+)/.exec(second.notes.join("\n"))?.[1];
  expect(kept && readFileSync(kept, "utf8")).toBe("my own words\n");
}, 120_000);

test("a run whose worktree cannot be made leaves neither a folder nor a branch, and asks no model", async () => {
  const at = await scene({ files: { "a.txt": "a\n" } });
  writeFileSync(join(at.project, ".git", "info", "attributes"), "a.txt filter=broken\n");
  git(at.project, "config", "filter.broken.clean", "cat");
  git(at.project, "config", "filter.broken.smudge", "false");
  git(at.project, "config", "filter.broken.required", "true");
  const run = await (await begin(at)).finished;
  expect(run).toMatchObject({ status: "failed", branch: null, reason: expect.stringContaining("smudge filter broken failed") });
  expect(existsSync(join(at.home, "runs", run.id))).toBe(false);
  expect(git(at.project, "for-each-ref", "--format=%(refname)")).toBe("refs/heads/main");
  expect(git(at.project, "worktree", "list").split("\n")).toHaveLength(1);
  expect(at.model.requests).toEqual([]);
});
