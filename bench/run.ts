import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createEngine } from "../src/engine/engine.ts";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { type Act, type ChatRequest, textOf } from "../src/engine/rehearsal/wire.ts";
import { Config } from "../src/home/config.ts";
import { createLog } from "../src/lib/log.ts";
import { createRedactor } from "../src/lib/redact.ts";
import type { Sandbox } from "../src/process/sandbox.ts";
import type { Run } from "../src/protocol/runs.ts";
import { openStore } from "../src/store/open.ts";
import { readRunSettings } from "../src/swarm/pipeline/settings.ts";
import { createSwarm } from "../src/swarm/run/swarm.ts";
import { testGit, walledGit } from "../test/support/git.ts";
import { bindTools } from "../test/support/swarm/bind.ts";
import { temporaryFolder } from "./support.ts";

/** How long the project's only check takes. */
export const CHECK_MS = 50;
export const CHECK = `sleep ${CHECK_MS / 1000}`;

/** The sandbox of a measured run, and the command that its engineers call after writing. */
export interface Behind {
  sandbox: (home: string) => Sandbox;
  command: string;
}

/** Measures a run in this process, with the given sandbox. */
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
    findChecks: async () => [{ name: "check", command: CHECK, cwd: "." }],
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

/** The first turn of a runtime loads its tokenizer. A daemon has done that long before a run. */
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

export function expectApproved(result: Run): void {
  if (result.outcome !== "approved") throw new Error(`the run ended as ${result.outcome}: ${result.reason}`);
}

/** Creates a project with one commit that contains the given files. */
export function makeProject(folder: string, files: Readonly<Record<string, string>> = {}): string {
  const project = join(folder, "project");
  mkdirSync(project, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(project, name)), { recursive: true });
    writeFileSync(join(project, name), text);
  }
  writeFileSync(join(project, "README.md"), "A project.\n");
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=B", "-c", "user.email=b@localhost", ...args], { cwd: project });
  git("init", "-q", "-b", "main");
  git("add", "-A");
  git("commit", "-q", "-m", "start");
  return project;
}

/** The model's answer as each of the agents. */
export function answer(request: ChatRequest, tasks: number, command?: string): Act & { delayMs?: number } {
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
