import { existsSync, readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { messageOf } from "../lib/errors.ts";
import type { Life } from "./life.ts";
import type { SessionSpec } from "./port.ts";
import { sessionLog } from "./recover.ts";
import type { Runtime } from "./runtime.ts";
import { createSessionOpener, type OpenSession, type SessionOpenerDeps } from "./session-open.ts";
import { type CurrentTurn, toolsFor } from "./session-tools.ts";

/** A session that a runtime holds in memory now. */
export interface LiveSession extends OpenSession {
  life: Life;
}

/** Makes, resumes and puts away sessions, so that no more than a given number are in memory. */
export interface Sessions {
  /** The session, made or resumed if need be, with today's system message. It stays live until released. */
  acquire(spec: SessionSpec, turn: CurrentTurn, options?: { continuePendingWork?: boolean }): Promise<LiveSession>;
  release(id: string): void;
  /** Forgets the handle, for a session that its runtime no longer knows. */
  drop(id: string): void;
  remove(id: string): Promise<void>;
  liveCount(): number;
}

interface Entry extends LiveSession {
  /** What it was opened with, in one text: anything else has to be opened anew. */
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

  /** Takes a session of the runtime's off the disk. */
  async function erase(name: string): Promise<void> {
    const file = sessionLog(folder, name);
    if (existsSync(file)) {
      const life = await runtime.life();
      await life.client.deleteSession(name).catch((error: unknown) => {
        if (!/not found/i.test(messageOf(error))) throw error;
      });
    }
    // A session that was made ready and never asked has a folder that the runtime does not count as one.
    if (basename(dirname(file)) === name) rmSync(dirname(file), { recursive: true, force: true });
  }

  return {
    async acquire(spec, now, { continuePendingWork = false } = {}) {
      const life = await runtime.life();
      const window = windowOf(spec.model);
      const system = clean(await spec.systemMessage(window)).toWellFormed();
      const tools = toolsFor(spec, window);
      const openedWith = JSON.stringify([
        system,
        tools.map(({ name }) => name),
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
