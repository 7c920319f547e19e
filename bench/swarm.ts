import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../src/client/client.ts";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { readDaemonFile } from "../src/home/daemon-file.ts";
import { pathsOf } from "../src/home/paths.ts";
import { packageRoot } from "../src/lib/package-root.ts";
import type { Event } from "../src/protocol/events.ts";
import type { Run } from "../src/protocol/runs.ts";
import { walledGit } from "../test/support/git.ts";
import { answer, CHECK, CHECK_MS, expectApproved, makeProject } from "./run.ts";
import { build, describe, judge, median, startBenchDaemon, temporaryFolder } from "./support.ts";
import { clock, HELD, startBare } from "./turn.ts";

const CONCURRENCY = 4;
const TIMES = 9;
const GOES = 3;
/** Every effect is checked, and those of the agents' file tool are allowed. */
const LET_THROUGH = JSON.parse('[{ "tool": "file_ops", "match": "*", "then": "allow" }]');

/**
 * Compares the default pipeline with the critical path of its latencies. It runs in a daemon as a user would run it, with
 * approvals and every budget on, and a scripted model of fixed latency. Each daemon runs it several times, since its code is
 * cold the first time; the median counts.
 */
export async function run(args: string[]): Promise<void> {
  const latency = Number(args[0] ?? 1_000);
  build();
  console.log(`default pipeline, ${latency} ms a model request, a check of ${CHECK_MS} ms, ${CONCURRENCY} streams at once`);
  await describeMachine();
  for (const tasks of [1, 3, 8]) {
    const goes = await measureInDaemon(tasks, latency);
    const { pathMs, steps } = criticalPath(tasks, latency);
    const [{ result, requests }] = goes as [Go];
    const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
    const each = (of: (go: Go) => string | number) => goes.map(of).join(", ");
    const ownMs = ({ wallMs }: Go) => (wallMs - pathMs) / steps;
    console.log(
      `\n${tasks} tasks: ${each(({ wallMs }) => seconds(wallMs))}, critical path ${seconds(pathMs)}; ${requests} model requests, ` +
        `${result.steps.length} steps, ${steps} of them on the path; ${result.usage.inputTokens} tokens sent`,
    );
    console.log(`       our own a step: ${each((go) => ownMs(go).toFixed(1))} ms, the first of a daemon first`);
    console.log(`       processor time: the Copilot runtime ${each((go) => go.runtimeMs)} ms, IO ${each((go) => go.ioMs)} ms`);
    const wallMs = median(goes.map((go) => go.wallMs));
    if (latency >= 1_000) judge(`${tasks} tasks, times the critical path`, wallMs / pathMs, 1.15);
    judge(`${tasks} tasks, our own a step on the path`, median(goes.map(ownMs)), 40, " ms");
  }
}

/** One run, from the request for it until its end is reported. */
interface Go {
  wallMs: number;
  result: Run;
  requests: number;
  runtimeMs: number;
  ioMs: number;
}

/** Performs several runs one after another in one daemon. */
async function measureInDaemon(tasks: number, latency: number): Promise<Go[]> {
  const folder = temporaryFolder();
  let delayMs = 0;
  const model = await startModelServer((request) => ({ ...answer(request, tasks), delayMs }));
  const daemon = await startBenchDaemon(model.url, join(folder.path, "daemon"), { ...HELD, approvalRules: LET_THROUGH });
  const pipeline = readFileSync(join(packageRoot, "pipelines", "default.yaml"), "utf8");
  const files = { "swarm.config.yaml": `${pipeline}\nchecks: ["${CHECK}"]\n` };
  const paths = pathsOf({ IO_HOME: daemon.home });
  const client = connect({ paths, env: {}, daemon: () => readDaemonFile(paths.daemon) });
  const spent = () => [daemon.runtimePid(), daemon.pid].map(processorMs);
  try {
    // The first turn of a runtime loads its tokenizer. A daemon has done that long before a run.
    await daemon.ask("hello", "warm-up");
    delayMs = latency;
    const goes: Go[] = [];
    for (let go = 0; go < GOES; go += 1) {
      model.requests.length = 0;
      const projectPath = makeProject(join(folder.path, String(go)), files);
      const over = new AbortController();
      let finished = Promise.resolve();
      await new Promise<void>((onOpen) => {
        finished = untilRunEnds(client.events({ signal: over.signal, onOpen }));
      });
      const before = spent();
      const started = performance.now();
      const { id } = await client.request<Run>("POST", "/api/runs", {
        projectPath,
        issue: "Add the functions that the list names.",
      });
      await finished;
      const wallMs = performance.now() - started;
      const [runtimeMs, ioMs] = spent().map((ms, index) => ms - before[index]!) as [number, number];
      over.abort();
      const result = await client.request<Run>("GET", `/api/runs/${id}`);
      expectApproved(result);
      goes.push({ wallMs, result, requests: model.requests.length, runtimeMs, ioMs });
      await untilPutAway(join(paths.runs, id, "worktrees"));
    }
    return goes;
  } finally {
    await daemon.stop();
    await model.close();
    folder.remove();
  }
}

/** A run's worktrees are removed after its end is reported, which would disturb the next run. */
async function untilPutAway(worktrees: string): Promise<void> {
  while (existsSync(worktrees) && readdirSync(worktrees).length > 0) await sleep(20);
}

/** A process's CPU time so far, in milliseconds. The system counts in hundredths of a second. */
function processorMs(pid: number): number {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ").slice(11, 13);
  return (Number(user) + Number(system)) * 10;
}

async function untilRunEnds(events: AsyncIterable<Event>): Promise<void> {
  for await (const { type } of events) if (type === "run.finished") return;
}

/** Measures what the parts of a step that are not IO's cost on this machine, since IO's own cost is judged beside them. */
async function describeMachine(): Promise<void> {
  const folder = temporaryFolder();
  const model = await startModelServer(() => ({ say: "Noted." }));
  const bare = await startBare(model.url, join(folder.path, "bare"), { messages: [] } as never);
  const { git } = walledGit(join(folder.path, "data"), { PATH: process.env.PATH, HOME: folder.path });
  const project = makeProject(folder.path);
  try {
    const turns: number[] = [];
    const starts: number[] = [];
    for (let at = 0; at < TIMES; at += 1) {
      const session = await bare.begin();
      turns.push(await clock(() => bare.ask(session, "hello")));
      starts.push(await clock(() => git.must(project, ["rev-parse", "HEAD"])));
    }
    console.log(describe("turn on a bare session", turns));
    console.log(describe("start of git, walled", starts));
  } finally {
    await bare.stop();
    await model.close();
    folder.remove();
  }
}

/**
 * The shortest time that the latencies, the checks, the order of merges and the limit on streams allow, and the steps on that
 * path. Before the streams: specification, two reviews, tasks. A stream: two requests of the engineer, a check, a review, a
 * test. After a merge the result is checked, one merge at a time; the first merge changes nothing and needs no check. Then the
 * last review.
 */
function criticalPath(tasks: number, latency: number): { pathMs: number; steps: number } {
  const slots = Array.from({ length: CONCURRENCY }, () => ({ at: 4 * latency, steps: 5 }));
  let merge = { at: 0, steps: 0 };
  for (let task = 0; task < tasks; task += 1) {
    const slot = slots.sort((a, b) => a.at - b.at)[0]!;
    const ready = { at: slot.at + 4 * latency + CHECK_MS, steps: slot.steps + 7 };
    const from = merge.at > ready.at ? merge : ready;
    const checked = task === 0 ? 0 : 1;
    merge = { at: from.at + checked * CHECK_MS, steps: from.steps + 1 + checked };
    Object.assign(slot, merge);
  }
  return { pathMs: merge.at + latency, steps: merge.steps + 3 };
}
