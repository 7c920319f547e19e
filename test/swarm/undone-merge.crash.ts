import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openStore } from "../../src/store/open.ts";
import { openRuns } from "../../src/store/runs.ts";
import { temporaryFolder } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { git, makeProject, play, task, taskIn, write } from "../support/swarm/index.ts";
import { type Life, live } from "../support/swarm/lives.ts";

test("a merge that has to be undone is undone wherever the run is killed, and the others' merges stay", async () => {
  const home = temporaryFolder();
  const project = makeProject({
    "swarm.config.yaml": `
checks: ["! { test -f T1.txt && test -f T2.txt; }"]
pipeline:
  - {phase: decompose, agent: pm}
  - {phase: implement, parallel: true, agent: engineer, reviews: []}
`,
  });
  const tasks = [task("T1", "One"), task("T2", "Two"), task("T3", "Three")];
  const model = await scriptedModel(
    play(({ role, prompt, afterTool }) => {
      if (role === "pm") return { say: JSON.stringify(tasks) };
      if (role !== "engineer" || afterTool) return undefined;
      if (prompt.includes("together they do not")) return { status: 400 };
      // The third task is late: it must be merged after the one that is undone, or be interrupted before that.
      return { ...write(`${taskIn(prompt)}.txt`, "work\n"), delayMs: taskIn(prompt) === "T3" ? 1_000 : 0 };
    }),
  );
  const killBefore = join(home, "killed-before.txt");
  // Other tests kill runs like this one before the merges.
  const spared = ["decompose/tasks:pm/1", "run/base", "run/summary"];
  for (const number of [1, 2, 3])
    spared.push(...["open", "draft", "commit/1"].map((step) => `implement/stream-${number}/${step}`));
  writeFileSync(killBefore, spared.map((key) => `${key}\n`).join(""));
  let resume: string | undefined;
  let last: Life | undefined;
  for (let lives = 0; lives < 60; lives += 1) {
    last = await live({ home, project, modelUrl: model.url, issue: "Do it", killBefore, ...(resume && { resume }) });
    const store = openStore(join(home, "io.db"));
    resume = openRuns(store).list(1)[0]?.id;
    store.close();
    if (last.signal === null) break;
  }
  const run = JSON.parse(last!.said);
  expect(run).toMatchObject({ status: "done", outcome: "unapproved" });
  const files = git(project, "ls-tree", "--name-only", `swarm/${resume}`).split("\n");
  expect(files).toContain("T3.txt");
  expect(files.filter((name) => /^T[12]\.txt$/.test(name))).toHaveLength(1);
  expect(git(project, "rev-parse", `swarm/${resume}^{tree}`)).toBe(run.tree);
  const killed = readFileSync(killBefore, "utf8").trim().split("\n");
  for (const kind of [/\/undo\/1$/, /\/merge\/1$/, /\/sync\/1$/, /^implement\/turn\/3$/])
    expect(killed.some((key) => kind.test(key))).toBe(true);
}, 300_000);
