import { existsSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { messageOf } from "../../lib/errors.ts";
import type { SessionSpec } from "../port.ts";
import type { RuntimeProcess } from "../runtime/process.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { createSessionOpener, type OpenSession, type SessionOpenerDeps } from "./open.ts";
import { sessionLog } from "./recover.ts";
import { type CurrentTurn, toolsFor } from "./tools.ts";

/** A session that a runtime holds in memory. */
export interface LiveSession extends OpenSession {
  life: RuntimeProcess;
}

/** Creates, resumes and disconnects sessions, so that at most a given number are in memory. */
export interface Sessions {
  /** Creates or resumes a session with today's system message. It stays live until released. */
  acquire(spec: SessionSpec, turn: CurrentTurn, options?: { continuePendingWork?: boolean }): Promise<LiveSession>;
  release(id: string): void;
  /** Drops the handle of a session that its runtime no longer knows. */
  drop(id: string): void;
  remove(id: string): Promise<void>;
  liveCount(): number;
}

interface Entry extends LiveSession {
  /** Everything it was opened with, as one text: any difference requires opening it again. */
  openedWith: string;
  turn: { now: CurrentTurn };
  busy: boolean;
  usedAt: number;
}

export interface SessionsDeps extends SessionOpenerDeps {
  runtime: Runtime;
  maxLive: () => number;
}

export function createSessions({ runtime, maxLive, ...deps }: SessionsDeps): Sessions {
  const { folder, generations, log, modelConfig, windowOf, clean } = deps;
  const open = createSessionOpener(deps);
  const entries = new Map<string, Entry>();

  async function makeRoom(): Promise<void> {
    const idle = [...entries].filter(([, entry]) => !entry.busy).sort(([, a], [, b]) => a.usedAt - b.usedAt);
    const excess = entries.size - maxLive();
    for (const [id, entry] of idle.slice(0, Math.max(0, excess))) {
      entries.delete(id);
      await putAway(entry);
    }
  }

  async function putAway(entry: Entry): Promise<void> {
    if (entry.life.isDead()) return;
    await entry.sdk
      .disconnect()
      .catch((error: unknown) => log.debug("a session was not put away cleanly", { error: messageOf(error) }));
  }

  /** Deletes a runtime session from the disk. */
  async function erase(name: string): Promise<void> {
    const file = sessionLog(folder, name);
    if (existsSync(file)) {
      const life = await runtime.life();
      await life.client.deleteSession(name).catch((error: unknown) => {
        if (!/not found/i.test(messageOf(error))) throw error;
      });
    }
    // A prepared session that was never prompted has a folder that the runtime does not recognise as a session.
    // The runtime may write a last file into it meanwhile, so a non-empty folder is tried again.
    if (basename(dirname(file)) === name)
      await rm(dirname(file), { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
  }

  return {
    async acquire(spec, now, { continuePendingWork = false } = {}) {
      const life = await runtime.life();
      const window = windowOf(spec.model);
      const system = clean(await spec.systemMessage(window)).toWellFormed();
      const tools = toolsFor(spec, window);
      const openedWith = JSON.stringify([
        system,
        // A foreign tool's description may change while its name stays.
        tools.map(({ name, description, parameters, optional }) => (optional ? [name, description, parameters] : name)),
        modelConfig(spec.model).model,
        spec.workingDirectory,
        generations.current(spec.id).session,
      ]);
      const known = entries.get(spec.id);
      if (known && known.life === life && !life.isDead() && known.openedWith === openedWith && !continuePendingWork) {
        known.turn.now = now;
        known.busy = true;
        known.usedAt = performance.now();
        return known;
      }
      if (known) {
        entries.delete(spec.id);
        await putAway(known);
      }
      const turn = { now };
      const opened = await open({ spec, life, turn, system, tools, continuePendingWork });
      if (known && known.name !== opened.name) await erase(known.name);
      const entry: Entry = { ...opened, life, openedWith, turn, busy: true, usedAt: performance.now() };
      entries.set(spec.id, entry);
      await makeRoom();
      return entry;
    },
    release(id) {
      const entry = entries.get(id);
      if (entry) entry.busy = false;
    },
    drop(id) {
      entries.delete(id);
    },
    async remove(id) {
      const entry = entries.get(id);
      entries.delete(id);
      if (entry) await putAway(entry);
      const states = join(folder, "session-state");
      for (const name of existsSync(states) ? readdirSync(states) : []) {
        if (generations.isOf(id, name)) await erase(name);
      }
      generations.forget(id);
    },
    liveCount: () => entries.size,
  };
}
