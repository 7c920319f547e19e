import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createEngine } from "../src/engine/engine.ts";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { type Act, type ChatRequest, textOf } from "../src/engine/rehearsal/wire.ts";
import { Config } from "../src/lib/config.ts";
import { createLog } from "../src/lib/log.ts";
import { createRedactor } from "../src/lib/redact.ts";
import type { Sandbox } from "../src/process/sandbox.ts";
import type { Run } from "../src/protocol/runs.ts";
import { openStore } from "../src/store/open.ts";
import { readRunSettings } from "../src/swarm/pipeline/settings.ts";
import { createSwarm } from "../src/swarm/run/swarm.ts";
import { testGit, walledGit } from "../test/support/git.ts";
import { bindTools } from "../test/support/swarm/bind.ts";
import { describe, judge, temporaryFolder } from "./support.ts";
import { clock, startBare } from "./turn.ts";

const CONCURRENCY = 4;
const CHECK_MS = 50;

/** The default pipeline on a scripted model of fixed latency, against the critical path of those latencies. */
export async function run(args: string[]): Promise<void> {
  const latency = Number(args[0] ?? 1_000);
  console.log(`default pipeline, ${latency} ms a model request, a check of ${CHECK_MS} ms, ${CONCURRENCY} streams at once`);
  await describeMachine();
  for (const tasks of [1, 3, 8]) {
    const { wallMs, result, requests, sentTokens } = await measure(tasks, latency);
    const { pathMs, steps } = criticalPath(tasks, latency);
    const ownMs = (wallMs - pathMs) / steps;
    console.log(
      `\n${tasks} tasks: ${(wallMs / 1000).toFixed(2)} s, critical path ${(pathMs / 1000).toFixed(2)} s; ${requests} model requests, ` +
        `${result.steps.length} steps, ${steps} of them on the path; ${sentTokens} tokens sent`,
    );
    if (latency >= 1_000) judge(`${tasks} tasks, times the critical path`, wallMs / pathMs, 1.15);
    judge(`${tasks} tasks, our own a step on the path`, ownMs, 40, " ms");
  }
}

const TIMES = 9;

/** What the parts of a step that are not IO's cost on this machine, without which its own cannot be judged. */
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

/** How a run is measured besides: what its commands run behind, and what the engineers call after they have written. */
export interface Behind {
  sandbox: (home: string) => Sandbox;
  command: string;
}

export async function measure(tasks: number, latency: number, behind?: Behind, prepare?: (project: string) => void) {
  const folder = temporaryFolder();
  const home = behind ? join(folder.path, "io") : folder.path;
  const sandbox = behind?.sandbox(home);
  mkdirSync(home, { recursive: true });
  const asked: number[] = [];
  const model = await startModelServer((request) => {
    asked.push(performance.now());
    return { ...answer(request, tasks, behind?.command), delayMs: latency };
  });
  const env = { PATH: process.env.PATH, HOME: folder.path };
  const log = createLog({ redactor: createRedactor() });
  const store = openStore(join(folder.path, "io.db"));
  const config = Config.parse({});
  const engine = await createEngine({
    folder: join(folder.path, "sessions"),
    config: () => config,
    env,
    choice: {
      kind: "provider",
      why: "the bench's model",
      model: "scripted",
      named: true,
      names: { address: "the test", key: "the test", model: "the test" },
      provider: { type: "openai", baseUrl: model.url, wireApi: "completions" },
    },
    rehearsal: () => ({ say: "never asked" }),
    log,
  });
  await engine.start();
  const swarm = createSwarm({
    store,
    engine,
    emit: () => undefined,
    bind: bindTools(store, home, sandbox),
    ...(sandbox
      ? { git: testGit({ home, wrap: sandbox.wrap }, env), wrap: sandbox.wrap }
      : walledGit(join(folder.path, "data"), env)),
    redactor: createRedactor(),
    findChecks: async () => [{ name: "check", command: `sleep ${CHECK_MS / 1000}`, cwd: "." }],
    runsFolder: join(home, "runs"),
    log,
    env,
  });
  const projectPath = makeProject(folder.path);
  prepare?.(projectPath);
  await warmUp(engine, folder.path);
  model.requests.length = 0;
  asked.length = 0;
  const started = performance.now();
  const result = await (
    await swarm.start({ projectPath, issue: "Add the functions that the list names.", settings: readRunSettings({}) })
  ).finished;
  const wallMs = performance.now() - started;
  await swarm.close();
  await engine.stop();
  await model.close();
  store.close();
  folder.remove();
  expectApproved(result);
  return {
    wallMs,
    beforeFirstMs: asked[0]! - started,
    result,
    requests: model.requests.length,
    sentTokens: result.usage.inputTokens,
  };
}

/** The first turn of a runtime loads its tokenizer; a daemon has done that long before a run. */
async function warmUp(engine: Awaited<ReturnType<typeof createEngine>>, folder: string): Promise<void> {
  const spec = {
    id: "warm-up",
    systemMessage: () => "Warm up.",
    tools: [],
    workingDirectory: folder,
  };
  const request = { owner: "bench", prompt: "hello", attempt: 1, signal: new AbortController().signal };
  await engine.session(spec).run({ ...request, silenceMs: 60_000, capMs: 60_000 });
}

function expectApproved(result: Run): void {
  if (result.outcome !== "approved") throw new Error(`the run ended as ${result.outcome}: ${result.reason}`);
}

function makeProject(folder: string): string {
  const project = join(folder, "project");
  mkdirSync(project);
  writeFileSync(join(project, "README.md"), "A project.\n");
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=B", "-c", "user.email=b@localhost", ...args], { cwd: project });
  git("init", "-q", "-b", "main");
  git("add", "-A");
  git("commit", "-q", "-m", "start");
  return project;
}

function answer(request: ChatRequest, tasks: number, command?: string): Act & { delayMs?: number } {
  const system = textOf(request.messages[0]);
  const last = request.messages.at(-1);
  const prompt = textOf(last);
  if (/^You are the product manager/.test(system)) {
    const list = Array.from({ length: tasks }, (_, index) => ({ id: `T${index + 1}`, title: `Function ${index + 1}` }));
    return { say: prompt.includes("Reply with a JSON array") ? JSON.stringify(list) : "Functions, one a file." };
  }
  if (/^You are the engineer/.test(system)) {
    const id = /## Your task\n(\w+)/.exec(prompt)?.[1] ?? "T0";
    if (last?.role === "tool") return { say: "Written; the checks pass." };
    const write = { tool: "file_ops", args: { operation: "write", path: `${id}.js`, content: `export const ${id} = 1;\n` } };
    return { call: command === undefined ? [write] : [write, { tool: "shell", args: { command } }] };
  }
  return { say: /^You are the tester/.test(system) ? "ALL_PASSED" : "APPROVED" };
}

/**
 * The shortest time the latencies, checks, the order of merges and the limit on streams allow, and the steps on that way.
 * Before the streams: specification, two reviews, tasks. A stream: two requests of the engineer, a check, review, test. After a
 * merge the result is checked, one merge at a time; the first of them changes nothing and needs no check. Then the last review.
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
