import type { ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { CopilotClient, type CopilotClientOptions, RuntimeConnection } from "@github/copilot-sdk";
import { isAlive } from "../lib/alive.ts";
import { writeFileAtomic } from "../lib/atomic.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { commandOf, hasEnvironment, residentMb, waitForExit } from "../process/processes.ts";
import type { EngineState } from "./port.ts";

/** One runtime process, from its start to its end. */
export interface Life {
  readonly client: CopilotClient;
  readonly pid: number;
  /** Resolves when the process has ended. */
  readonly died: Promise<void>;
  isDead(): boolean;
  /** How many turns it is busy with. */
  turns: number;
}

/** Keeps one Copilot runtime alive. */
export interface Runtime {
  start(): Promise<void>;
  stop(): Promise<void>;
  state(): EngineState;
  /** The version of the runtime that was started last; null before that. */
  version(): string | null;
  /** The life to use now; waits for a start or restart that is under way, and rejects when none can be had. */
  life(): Promise<Life>;
  /** Called when a turn of a life has ended: a life that is to be replaced is ended once it is idle. */
  released(life: Life): void;
  /** Puts a new life in the place of this one, which ends once it is idle. */
  replace(life: Life): Promise<void>;
}

export interface RuntimeDeps {
  /** The runtime's home, which holds every session. */
  folder: string;
  /** The executable. */
  path: string;
  env: Record<string, string | undefined>;
  client: Pick<CopilotClientOptions, "requestHandler" | "useLoggedInUser" | "onListModels">;
  log: Log;
  maxMb: () => number;
  onState?: (state: EngineState) => void;
  healthEveryMs?: number;
}

const PING_MS = 5_000;
const MAX_BACK_OFF_MS = 10_000;
const STEADY_MS = 60_000;

export function createRuntime({
  folder,
  path,
  env,
  client: clientOptions,
  log,
  maxMb,
  onState,
  healthEveryMs = 30_000,
}: RuntimeDeps): Runtime {
  const pidFile = pidFileOf(folder, process.pid);
  let state: EngineState = "stopped";
  let current: Promise<Life> | undefined;
  let alive: Life | undefined;
  let health: NodeJS.Timeout | undefined;
  let failures = 0;
  let bornAt = 0;
  let version: string | null = null;
  const opening = new Set<CopilotClient>();
  const comings = new Set<Promise<Life>>();
  const retiring = new Set<Life>();
  const endings = new Set<Promise<void>>();

  const become = (next: EngineState) => {
    if (next === state) return;
    state = next;
    onState?.(next);
  };

  /** Somebody may have said stop while a runtime was on its way. */
  const stillWanted = () => {
    if (state === "stopped") throw stopped();
  };

  async function open(): Promise<Life> {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const client = new CopilotClient({
      ...clientOptions,
      connection: RuntimeConnection.forStdio({ path }),
      baseDirectory: folder,
      workingDirectory: folder,
      env,
      logLevel: "error",
    });
    opening.add(client);
    try {
      await client.start();
      return await follow(client);
    } finally {
      opening.delete(client);
    }
  }

  async function follow(client: CopilotClient): Promise<Life> {
    const child = childOf(client);
    let dead = false;
    const died = new Promise<void>((resolve) => {
      child.once("exit", () => {
        dead = true;
        resolve();
      });
    });
    const life: Life = { client, pid: child.pid ?? 0, died, isDead: () => dead, turns: 0 };
    writeFileAtomic(pidFile, `${life.pid}\n`);
    bornAt = performance.now();
    version = await versionOf(life);
    died.then(() => onDeath(life));
    return life;
  }

  function bringUp(): Promise<Life> {
    const coming = open().then(
      async (life) => {
        if (state === "stopped") {
          await end(life);
          throw stopped();
        }
        alive = life;
        become("ready");
        return life;
      },
      (error: unknown) => {
        stillWanted();
        failures += 1;
        become("failed");
        log.error("the agents' runtime did not start", { error: messageOf(error), failures });
        if (current === coming) current = undefined;
        throw error;
      },
    );
    current = coming;
    comings.add(coming);
    coming.catch(() => undefined).finally(() => comings.delete(coming));
    return coming;
  }

  function onDeath(life: Life): void {
    retiring.delete(life);
    // The SDK keeps a dead client's connection; this lets go of it. Its own complaint about that says nothing new.
    life.client.forceStop().catch(() => undefined);
    if (alive !== life || state === "stopped") return;
    alive = undefined;
    failures = performance.now() - bornAt > STEADY_MS ? 1 : failures + 1;
    become("restarting");
    log.warn("the agents' runtime ended unexpectedly and is started again", { pid: life.pid, failures });
    const wait = failures === 1 ? 0 : Math.min(MAX_BACK_OFF_MS, 100 * 2 ** failures);
    current = new Promise<void>((go) => setTimeout(go, wait)).then(() => {
      stillWanted();
      return bringUp();
    });
    // Whoever needs the runtime asks `life()` and is told there.
    current.catch(() => undefined);
  }

  async function check(): Promise<void> {
    const life = alive;
    if (!life || life.isDead()) return;
    if (!(await answers(life))) {
      log.warn("the agents' runtime does not answer and is ended", { pid: life.pid });
      kill(life.pid);
      return;
    }
    const megabytes = await residentMb(life.pid);
    if (megabytes > maxMb()) {
      log.info("the agents' runtime is renewed because of its memory", { megabytes });
      await replace(life);
    }
  }

  async function replace(life: Life): Promise<void> {
    // Whoever asks again while the successor is starting has nothing to do.
    if (alive !== life || retiring.has(life)) return;
    retiring.add(life);
    try {
      await bringUp();
    } catch (error) {
      retiring.delete(life);
      throw error;
    }
    released(life);
  }

  function released(life: Life): void {
    if (!retiring.has(life) || life.turns > 0) return;
    retiring.delete(life);
    const ending = end(life)
      .catch((error: unknown) => log.warn("an old runtime did not end cleanly", { error: messageOf(error) }))
      .finally(() => endings.delete(ending));
    endings.add(ending);
  }

  return {
    async start() {
      become("starting");
      await endLeftoverProcesses(folder, log);
      stillWanted();
      await bringUp();
      stillWanted();
      health = setInterval(() => {
        check().catch((error: unknown) => log.warn("the health check failed", { error: messageOf(error) }));
      }, healthEveryMs);
      health.unref();
    },
    async stop() {
      if (state === "stopped") return;
      become("stopped");
      clearInterval(health);
      const lives = [...retiring, ...(alive ? [alive] : [])];
      alive = undefined;
      await Promise.all([...lives.map(end), ...endings, ...[...opening].map(abandon)]);
      await Promise.allSettled(comings);
      rmSync(pidFile, { force: true });
    },
    state: () => state,
    version: () => version,
    life() {
      if (state === "stopped") return Promise.reject(stopped());
      return current ?? bringUp();
    },
    released,
    replace,
  };
}

/** Asks the runtime to end, and ends it if it does not. Sessions are on disk already. */
async function end(life: Life): Promise<void> {
  if (life.isDead()) return;
  const asked = life.client.rpc.runtime.shutdown().catch(() => undefined);
  await Promise.race([asked, life.died, new Promise((late) => setTimeout(late, 1_000).unref())]);
  await life.client.forceStop().catch(() => undefined);
  if (await waitForExit(life.pid, 2_000)) return;
  kill(life.pid);
  await waitForExit(life.pid, 2_000);
}

/** Ends a runtime that has not come up yet. */
async function abandon(client: CopilotClient): Promise<void> {
  const pid = processOf(client)?.pid;
  await client.forceStop().catch(() => undefined);
  if (pid !== undefined) await waitForExit(pid, 2_000);
}

const stopped = () => new Error("the engine was stopped");

async function answers(life: Life): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), PING_MS);
  });
  const pong = life.client.ping("health").then(
    () => true,
    () => false,
  );
  const answered = await Promise.race([pong, late]);
  clearTimeout(timer);
  return answered;
}

/** What the runtime calls itself; null when it ends before it says so. */
function versionOf({ client, died }: Life): Promise<string | null> {
  const told = client.getStatus().then(
    (status) => status.version,
    () => null,
  );
  return Promise.race([told, died.then(() => null)]);
}

/** Where the process that owns a runtime notes that runtime's pid: several processes may share one home. */
export function pidFileOf(folder: string, owner: number): string {
  return join(folder, `runtime-${owner}.pid`);
}

/** A runtime that outlived its killed owner must be gone before its sessions are resumed: two would write the same files. */
async function endLeftoverProcesses(folder: string, log: Log): Promise<void> {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    const owner = Number(/^runtime-(\d+)\.pid$/.exec(name)?.[1]);
    if (!owner || (owner !== process.pid && isAlive(owner))) continue;
    const file = join(folder, name);
    await endLeftover(Number.parseInt(readFileSync(file, "utf8"), 10), folder, log);
    rmSync(file, { force: true });
  }
}

async function endLeftover(pid: number, folder: string, log: Log): Promise<void> {
  if (!Number.isInteger(pid) || pid < 2 || !isAlive(pid)) return;
  if (!(await commandOf(pid)).includes("copilot") || hasEnvironment(pid, "COPILOT_HOME", folder) === false) return;
  if (await waitForExit(pid, 1_500)) return;
  log.warn("a runtime of an earlier life was still there and was ended", { pid });
  kill(pid);
  await waitForExit(pid, 2_000);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended already.
  }
}

/** The SDK tells nobody when its runtime ends, so its process is watched directly. */
function childOf(client: CopilotClient): ChildProcess {
  const child = processOf(client);
  if (!child)
    throw new Error("this version of the SDK hides its runtime process: engine/runtime.ts has to learn where it is now");
  return child;
}

function processOf(client: CopilotClient): ChildProcess | undefined {
  return (client as unknown as { cliProcess?: ChildProcess | null }).cliProcess ?? undefined;
}
