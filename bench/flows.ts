import { mkdirSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { type Daemon, startDaemon } from "../src/daemon/start.ts";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { type Model, textOf } from "../src/engine/rehearsal/wire.ts";
import { readToken } from "../src/home/api-token.ts";
import { packageRoot } from "../src/lib/package-root.ts";
import type { Message } from "../src/protocol/messages.ts";
import type { Run } from "../src/protocol/runs.ts";
import { BOT_TOKEN, startBotApi } from "../test/support/telegram/bot-api.ts";
import { createPerson } from "../test/support/telegram/person.ts";
import { until } from "../test/support/until.ts";
import { answer, makeProject } from "./run.ts";
import { temporaryFolder } from "./support.ts";

const OWNER = 4_242;
const THEN = "then";
/** The model's own code, which is not IO's way of a message. */
const REHEARSAL = "src/engine/rehearsal/";

/** Counts the files and functions of src that three flows run through, each after it has been done once. `--files` lists them. */
export async function run(args: string[]): Promise<void> {
  const listed = args.includes("--files");
  const folder = temporaryFolder();
  const closers: (() => unknown)[] = [folder.remove];
  try {
    const api = await startBotApi((work) => void closers.push(work));
    const model = await startModelServer(played);
    closers.push(model.close);
    const daemon = await begin(folder.path, model.url, api.url);
    closers.push(daemon.stop);
    const project = makeProject(folder.path, {
      "package.json": JSON.stringify({ scripts: { test: "node index.js" } }),
      "index.js": "",
    });
    const owner = createPerson(api, OWNER);
    const said = (text: string) => post<Message>(daemon, "/api/messages?wait=true", { text });
    const flows = {
      "a chat message": () => said("hello"),
      "a run": async () => {
        const { id } = await post<Run>(daemon, "/api/runs", { projectPath: project, issue: "Add the functions of the list." });
        await until("the end of the run", () => ended(daemon, id), 120_000);
      },
      "an approval on Telegram": async () => {
        const before = owner.shown().length;
        owner.send("run it");
        const fresh = () => owner.shown().slice(before);
        const question = await until("the question", () => fresh().find(({ buttons }) => buttons.length > 0), 30_000);
        owner.press(question, /Allow/);
        await until("the answer", () => fresh().find(({ text }) => text.startsWith("Done")), 30_000);
      },
    };
    const session = new Session();
    session.connect();
    closers.push(() => session.disconnect());
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true });
    for (const [name, flow] of Object.entries(flows)) {
      await flow();
      await counted(session);
      await flow();
      const files = await counted(session);
      const functions = [...files.values()].reduce((sum, count) => sum + count, 0);
      console.log(`${name.padEnd(26)} ${files.size} files, ${functions} functions`);
      if (listed) for (const [file, count] of [...files].sort()) console.log(`  ${String(count).padStart(3)} ${file}`);
    }
  } finally {
    for (const close of closers.reverse()) await close();
  }
}

/** Starts a daemon in this process, which asks before every command of a model. */
function begin(home: string, modelUrl: string, telegramApiRoot: string): Promise<Daemon> {
  const env = {
    ...{ PATH: process.env.PATH, HOME: home, IO_HOME: join(home, "io"), IO_PORT: "0" },
    ...{ COPILOT_PROVIDER_BASE_URL: modelUrl, COPILOT_PROVIDER_API_KEY: "none", COPILOT_MODEL: "scripted" },
  };
  mkdirSync(env.IO_HOME, { mode: 0o700 });
  const config = {
    ...{ telegramEnabled: true, telegramBotToken: BOT_TOKEN, telegramApiRoot, authorizedUserId: OWNER },
    approvalRules: [{ tool: "shell", match: "echo *", [THEN]: "ask" }],
  };
  writeFileSync(join(env.IO_HOME, "config.json"), JSON.stringify(config), { mode: 0o600 });
  return startDaemon({ env });
}

/** Answers in chats, where it calls the shell if it is asked to run something, and as the agents of a run. */
const played: Model = (request) => {
  const last = request.messages.at(-1);
  const isChat = request.messages.some((message) => message.role === "user" && textOf(message).includes("[via "));
  if (!isChat) return answer(request, 1);
  if (last?.role === "tool") return { say: "Done." };
  return textOf(last).includes("run it") ? { call: [{ tool: "shell", args: { command: "echo it" } }] } : { say: "Noted." };
};

/** How many functions of each file of src have been called since the last time. */
async function counted(session: Session): Promise<Map<string, number>> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const files = new Map<string, number>();
  for (const { url, functions } of result) {
    if (!url.startsWith("file:")) continue;
    const path = relative(packageRoot, fileURLToPath(url));
    // The first function of a module is its own body.
    const called = functions.filter(({ functionName, ranges }) => functionName !== "" && ranges[0]!.count > 0).length;
    if (called > 0 && path.startsWith("src/") && !path.startsWith(REHEARSAL)) files.set(path, called);
  }
  return files;
}

async function post<T>(daemon: Daemon, path: string, body: object): Promise<T> {
  return (await (await ask(daemon, path, { method: "POST", body: JSON.stringify(body) })).json()) as T;
}

async function ended(daemon: Daemon, id: string): Promise<boolean> {
  const { status, outcome, reason } = (await (await ask(daemon, `/api/runs/${id}`)).json()) as Run;
  if (status === "failed") throw new Error(`the run ended as ${outcome}: ${reason}`);
  return status !== "running";
}

function ask({ url, paths }: Daemon, path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${readToken(paths.token)}`, "content-type": "application/json" };
  return fetch(url + path, { ...init, headers });
}
