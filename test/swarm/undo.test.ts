import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/paths.ts";
import { openStore } from "../../src/store/open.ts";
import { openRuns } from "../../src/store/runs.ts";
import { createTurns } from "../../src/swarm/streams/merge-order.ts";
import { temporaryFolder } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { git, makeProject, play, task, taskIn, write } from "../support/swarm/index.ts";

function live(options: object): Promise<{ signal: NodeJS.Signals | null; said: string }> {
  return new Promise((done) => {
    const program = join(packageRoot, "test", "support", "swarm", "child.ts");
    const child = spawn(process.execPath, ["--import", "tsx", program, JSON.stringify(options)], {
      cwd: packageRoot,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    child.stdout.on("data", (chunk) => {
      said += chunk;
    });
    child.once("close", (_, signal) => done({ signal, said }));
  });
}

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
      // The third comes late: it is to be merged after the one that is undone, or cut off before it.
      return { ...write(`${taskIn(prompt)}.txt`, "work\n"), delayMs: taskIn(prompt) === "T3" ? 1_000 : 0 };
    }),
  );
  const killBefore = join(home, "killed-before.txt");
  // Up to the merges a run like this is killed elsewhere.
  const spared = ["decompose/tasks:pm/1", "run/base", "run/summary"];
  for (const number of [1, 2, 3])
    spared.push(...["open", "draft", "commit/1"].map((step) => `implement/stream-${number}/${step}`));
  writeFileSync(killBefore, spared.map((key) => `${key}\n`).join(""));
  let resume: string | undefined;
  let last: Awaited<ReturnType<typeof live>> | undefined;
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

test("a turn that an earlier life gave waits for its stream, and passes when that has ended", async () => {
  const order: number[] = [];
  const given = [2, 3];
  let awaited = 0;
  const turns = createTurns({
    give: async (turn, first) => given[turn - 1] ?? first,
    onAwait: () => {
      awaited += 1;
    },
  });
  const take = (stream: number) => turns.take(stream, async () => void order.push(stream));
  const one = take(1);
  await expect.poll(() => awaited).toBe(1);
  expect(turns.awaits(2)).toBe(true);
  await take(2);
  turns.end(2);
  await expect.poll(() => turns.awaits(3)).toBe(true);
  turns.end(3);
  await one;
  expect(order).toEqual([2, 1]);
});

test("when a turn cannot be given, all who wait are told", async () => {
  const turns = createTurns({ give: () => Promise.reject(new Error("stopped")), onAwait: () => {} });
  await expect(turns.take(1, async () => 1)).rejects.toThrow("stopped");
});
