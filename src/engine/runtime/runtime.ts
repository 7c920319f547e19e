import { mkdirSync, rmSync } from "node:fs";
import { writeFileAtomic } from "../../lib/atomic.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { EngineState } from "../port.ts";
import { watchHealth } from "./health.ts";
import { endLeftoverRuntimes, pidFileOf } from "./leftovers.ts";
import { createStarter, endRuntime, type RuntimeProcess, type RuntimeProcessDeps } from "./process.ts";
import { createRetirement } from "./retirement.ts";

/** Keeps one Copilot runtime running. */
export interface Runtime {
  start(): Promise<void>;
  stop(): Promise<void>;
  state(): EngineState;
  /** The version of the last started runtime; null before that. */
  version(): string | null;
  /** The process to use now. Waits while one is starting, and rejects if none can be started. */
  life(): Promise<RuntimeProcess>;
  /** Called when a turn of a process has ended: a process that is being replaced ends once it is idle. */
  released(life: RuntimeProcess): void;
  /** Replaces this process by a new one; it ends once it is idle. */
  replace(life: RuntimeProcess): Promise<void>;
}

export interface RuntimeDeps extends Omit<RuntimeProcessDeps, "onPid"> {
  log: Log;
  maxMb: () => number;
  onState?: (state: EngineState) => void;
  healthEveryMs?: number;
}

const MAX_BACK_OFF_MS = 10_000;
const STEADY_MS = 60_000;

export function createRuntime({ log, maxMb, onState, healthEveryMs = 30_000, ...deps }: RuntimeDeps): Runtime {
  const { folder } = deps;
  const pidFile = pidFileOf(folder, process.pid);
  let state: EngineState = "stopped";
  let current: Promise<RuntimeProcess> | undefined;
  let alive: RuntimeProcess | undefined;
  let stopWatching = () => {};
  let failures = 0;
  let bornAt = 0;
  let version: string | null = null;
  const starter = createStarter({ ...deps, onPid: (pid) => writeFileAtomic(pidFile, `${pid}\n`) });
  const coming = new Set<Promise<RuntimeProcess>>();
  const retiring = createRetirement(log);

  const become = (next: EngineState) => {
    if (next === state) return;
    state = next;
    onState?.(next);
  };

  /** A stop may have been requested while a runtime was starting. */
  const stillWanted = () => {
    if (state === "stopped") throw stopped();
  };

  async function open(): Promise<RuntimeProcess> {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const life = await starter.start();
    bornAt = performance.now();
    version = life.version;
    life.onDeath(() => onDeath(life));
    return life;
  }

  function bringUp(): Promise<RuntimeProcess> {
    const next = open().then(
      async (life) => {
        if (state === "stopped") {
          await endRuntime(life);
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
        if (current === next) current = undefined;
        throw error;
      },
    );
    current = next;
    coming.add(next);
    next.catch(() => undefined).finally(() => coming.delete(next));
    return next;
  }

  function onDeath(life: RuntimeProcess): void {
    retiring.remove(life);
    // The SDK keeps a dead client's connection; this releases it, ignoring the SDK's own error about it.
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
    // Whoever needs the runtime calls `life()` and gets the error there.
    current.catch(() => undefined);
  }

  async function replace(life: RuntimeProcess): Promise<void> {
    // A successor is already starting.
    if (alive !== life || retiring.has(life)) return;
    retiring.add(life);
    try {
      await bringUp();
    } catch (error) {
      retiring.remove(life);
      throw error;
    }
    retiring.released(life);
  }

  return {
    async start() {
      become("starting");
      await endLeftoverRuntimes(folder, log);
      stillWanted();
      await bringUp();
      stillWanted();
      stopWatching = watchHealth({ everyMs: healthEveryMs, maxMb, alive: () => alive, replace, log });
    },
    async stop() {
      if (state === "stopped") return;
      become("stopped");
      stopWatching();
      const lives = [...retiring.all(), ...(alive ? [alive] : [])];
      alive = undefined;
      await Promise.all([...lives.map(endRuntime), retiring.settled(), starter.abandon()]);
      await Promise.allSettled(coming);
      rmSync(pidFile, { force: true });
    },
    state: () => state,
    version: () => version,
    life() {
      if (state === "stopped") return Promise.reject(stopped());
      return current ?? bringUp();
    },
    released: retiring.released,
    replace,
  };
}

const stopped = () => new Error("the engine was stopped");
