import { execFileSync } from "node:child_process";
import { mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import { type ChatRequest, textOf } from "../../src/engine/rehearsal/wire.ts";
import type { Task } from "../../src/protocol/squads.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "./daemon.ts";
import { type AtTheEnd, temporaryFolder, temporaryHome } from "./home.ts";
import { until } from "./until.ts";

/** Creates a project folder with these files, committed to git. */
export function project(
  files: Record<string, string> = { "README.md": "# A project\n" },
  atTheEnd: AtTheEnd = onTestFinished,
): string {
  const folder = realpathSync(temporaryFolder(atTheEnd));
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  const git = (...args: string[]) => execFileSync("git", args, { cwd: folder, stdio: "ignore" });
  git("init", "-q");
  git("add", "-A");
  git("-c", "user.name=Test", "-c", "user.email=test@localhost", "commit", "-q", "-m", "first");
  return folder;
}

/** Starts a daemon on a scripted model. It is stopped by SIGTERM after the test. */
export async function daemonOn(model: ModelServer, home = temporaryHome()): Promise<TestDaemon> {
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  onTestFinished(() => (daemon.child.exitCode === null && daemon.child.signalCode === null ? daemon.kill("SIGTERM") : undefined));
  return daemon;
}

export const systemOf = (request: ChatRequest) => textOf(request.messages.find(({ role }) => role === "system"));
/** The character that a request is for; undefined for the orchestrator. */
export const characterOf = (request: ChatRequest) => /^You are (.+?), .* of the squad "/.exec(systemOf(request))?.[1];
/** How many tool results follow the last prompt. */
export const stepOf = (request: ChatRequest) => {
  const start = request.messages.findLastIndex(({ role }) => role === "user");
  return request.messages.slice(start).filter(({ role }) => role === "tool").length;
};
export const lastResult = (request: ChatRequest) => textOf(request.messages.findLast(({ role }) => role === "tool"));

/** Creates a squad with one agent per role. Returns the agents' names. */
export async function squadWith(daemon: TestDaemon, projectPath: string, name: string, roles: string[]): Promise<string[]> {
  const made = await daemon.json<{ slug: string; error?: unknown }>("POST", "/api/squads", { name, projectPath, slug: name });
  if (made.error) throw new Error(JSON.stringify(made.error));
  const names: string[] = [];
  for (const roleTitle of roles) {
    const agent = await daemon.json<{ characterName: string }>("POST", `/api/squads/${name}/agents`, {
      roleTitle,
      charter: `Everything a ${roleTitle} answers for.`,
    });
    names.push(agent.characterName);
  }
  return names;
}

export const delegate = (daemon: TestDaemon, slug: string, body: { task: string; agent?: string; conversation?: string }) =>
  daemon.json<Task>("POST", `/api/squads/${slug}/tasks`, body);

export const ended = (daemon: TestDaemon, id: string, withinMs = 30_000) =>
  until(
    `task ${id} to end`,
    async () => {
      const task = await daemon.json<Task>("GET", `/api/tasks/${id}`);
      return task.finishedAt === null ? undefined : task;
    },
    withinMs,
  );
