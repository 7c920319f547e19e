import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import type { Engine } from "../../../src/engine/port.ts";
import type { ModelServer } from "../../../src/engine/rehearsal/server.ts";
import { type Act, type ChatRequest, textOf } from "../../../src/engine/rehearsal/wire.ts";
import { createLog } from "../../../src/lib/log.ts";
import { packageRoot } from "../../../src/lib/package-root.ts";
import { createRedactor } from "../../../src/lib/redact.ts";
import type { Check } from "../../../src/project/commands.ts";
import type { News } from "../../../src/protocol/events.ts";
import { openStore, type Store } from "../../../src/store/open.ts";
import { type RunSettings, readRunSettings } from "../../../src/swarm/pipeline/settings.ts";
import type { SwarmDeps } from "../../../src/swarm/run/deps.ts";
import { createSwarm, type Swarm } from "../../../src/swarm/run/swarm.ts";
import { startEngine } from "../engine.ts";
import { walledGit } from "../git.ts";
import { type AtTheEnd, temporaryFolder } from "../home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../model.ts";
import { bindTools } from "./bind.ts";

/** What a scripted agent is told when it is asked to act. */
export interface Told {
  /** The file name of its instructions, or their first line. */
  role: string;
  prompt: string;
  afterTool: boolean;
  /** How many times this role was asked before. */
  before: number;
  request: ChatRequest;
}
export type Script = (told: Told) => Act | Promise<Act> | undefined;

const ROLES = readdirSync(join(packageRoot, "agents")).map((file) => ({
  role: file.replace(/\.md$/, ""),
  text: readFileSync(join(packageRoot, "agents", file), "utf8").trim(),
}));

export function roleOf(request: ChatRequest): string {
  const system = textOf(request.messages.find((message) => message.role === "system")).trim();
  return ROLES.find(({ text }) => system.startsWith(text))?.role ?? system.split("\n")[0]!;
}

export const task = (id: string, title: string, more: object = {}) => ({
  id,
  title,
  acceptanceCriteria: [`${title} works`],
  ...more,
});
export const write = (path: string, content: string): Act => ({
  call: [{ tool: "file_ops", args: { operation: "write", path, content } }],
});
export const sh = (command: string): Act => ({ call: [{ tool: "shell", args: { command } }] });

/** The id of the task that an engineer works on. */
export const taskIn = (prompt: string): string => /## (?:Your|The) task\n(\w+):/.exec(prompt)?.[1] ?? "";

/** What each role does unless a test says otherwise. */
export function usual({ role, prompt, afterTool }: Told): Act {
  switch (role) {
    case "pm":
      return {
        say: prompt.includes("Reply with a JSON array")
          ? JSON.stringify([task("T1", "Add a greeting")])
          : "# Spec\n\nGreet.\n\n## Decisions\n\n- English only",
      };
    case "designer":
      return { say: "A big button." };
    case "engineer":
      return afterTool
        ? { say: "Done; the checks pass." }
        : write(`${taskIn(prompt) || "fix"}.txt`, `work of ${taskIn(prompt)}\n`);
    case "tester":
      return { say: "Tried it.\n\nALL_PASSED" };
    default:
      return { say: "Good.\n\nAPPROVED" };
  }
}

export interface Harness {
  home: string;
  project: string;
  model: ModelServer;
  swarm: Swarm;
  store: Store;
  news: News[];
  /** All log lines so far. */
  log(): readonly string[];
  settings: RunSettings;
  /** The roles that were asked, in order, one entry per turn. */
  roles(): string[];
  /** The prompts that a role received. */
  prompts(role: string): string[];
}

export interface HarnessOptions {
  /** The folder in which to create the data folder and the project. */
  folder?: string;
  script?: Script;
  /** Files of the project, which are committed. */
  files?: Record<string, string>;
  env?: NodeJS.ProcessEnv;
  checks?: Check[];
  git?: boolean;
  parts?: Partial<SwarmDeps>;
  /** The models that the provider lists. By default, it has no list. */
  models?: string[];
  /** The model's context window in tokens. By default, the usual one. */
  window?: number;
  /** When to clean up: after the test by default, or with `afterAll` after all tests of a file. */
  atTheEnd?: AtTheEnd;
  /** Changes the engine's answers. */
  engine?: (real: Engine) => Engine;
}

export const git = (cwd: string, ...args: string[]): string =>
  execFileSync("git", ["-c", "user.name=T", "-c", "user.email=t@t", "-c", "protocol.file.allow=always", ...args], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  }).trim();

/** What a run notes about a project in which no code can be broken to test the checks. */
export const NOTHING_TO_BREAK = "the project has no source file that a check could import, so its checks count as they are";

/** A check that passes: without one, the result of a run is untested. */
const MAKEFILE = "test:\n\t@test -f README.md\n";

/** Creates a project in a folder of its own. */
export function makeProject(files: Record<string, string> = {}, withGit = true, folder = temporaryFolder()): string {
  const project = join(folder, "project");
  for (const [path, content] of Object.entries({ "README.md": "A project.\n", Makefile: MAKEFILE, ...files })) {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), content);
  }
  if (withGit) {
    git(project, "init", "-q", "-b", "main");
    git(project, "add", "-A");
    git(project, "commit", "-q", "-m", "start");
  }
  return project;
}

/** Starts a swarm on the real runtime with a scripted model. */
export async function startSwarm({
  folder,
  script,
  files,
  env = {},
  checks = [{ name: "test", command: "true", cwd: "." }],
  git: withGit = true,
  parts = {},
  models,
  window,
  atTheEnd = onTestFinished,
  engine: changed = (real) => real,
}: HarnessOptions = {}): Promise<Harness> {
  const home = folder === undefined ? temporaryFolder(atTheEnd) : join(folder, "home");
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const project = makeProject(files, withGit, folder ?? temporaryFolder(atTheEnd));
  const model = await scriptedModel(play(script), { ...(models && { models }) }, atTheEnd);
  const store = openStore(join(home, "io.db"));
  const news: News[] = [];
  const lines: string[] = [];
  const log = createLog({ redactor: createRedactor(), echo: (line) => lines.push(line) });
  const known = window === undefined ? [] : [{ id: "scripted", contextWindow: window }];
  const config = { provider: { baseUrl: model.url, model: "scripted", models: known } };
  const engine = changed(await startEngine(join(home, "sessions"), model.url, config, { log }, atTheEnd));
  const machine = { PATH: process.env.PATH, HOME: home };
  const swarm = createSwarm({
    store,
    engine,
    emit: (each) => news.push(each),
    bind: bindTools(store, home),
    ...walledGit(home, machine),
    redactor: createRedactor(),
    findChecks: async () => checks,
    runsFolder: join(home, "runs"),
    log,
    env: machine,
    ...parts,
  });
  atTheEnd(() => swarm.close());
  const turns = () => model.requests.filter((request) => !isAfterTool(request));
  return {
    home,
    project,
    model,
    swarm,
    store,
    news,
    log: () => lines,
    settings: readRunSettings(env),
    roles: () => turns().map(roleOf),
    prompts: (role) =>
      turns()
        .filter((request) => roleOf(request) === role)
        .map(lastUserText),
  };
}

/** A model that follows a script, and does the usual where the script returns nothing. */
export function play(script: Script = () => undefined): (request: ChatRequest) => Act | Promise<Act> {
  const counts = new Map<string, number>();
  return (request) => {
    const role = roleOf(request);
    const afterTool = isAfterTool(request);
    const before = counts.get(role) ?? 0;
    if (!afterTool) counts.set(role, before + 1);
    const told: Told = { role, prompt: lastUserText(request), afterTool, before, request };
    return lostEffect(request) ?? script(told) ?? usual(told);
  };
}

/**
 * Repeats a call whose outcome is unknown because IO was killed, as any model would that is told so and finds no result. So
 * where runs are killed, the effects must allow repetition.
 */
function lostEffect({ messages }: ChatRequest): Act | undefined {
  const tool = /^This call of (file_ops|shell) was begun before an interruption/.exec(textOf(messages.at(-1)))?.[1];
  const call = messages.flatMap(({ tool_calls = [] }) => tool_calls).find(({ id }) => id === messages.at(-1)?.tool_call_id);
  return tool && call ? { call: [{ tool, args: JSON.parse(call.function.arguments) }] } : undefined;
}
