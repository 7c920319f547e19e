import { existsSync, rmSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { CopilotSession, ResumeSessionConfig, Tool as SdkTool } from "@github/copilot-sdk";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { EngineTool } from "../protocol/turns.ts";
import type { SessionSpec } from "./port.ts";
import { sessionLog } from "./recover.ts";
import type { Life, Runtime } from "./runtime.ts";

/** The turn a session is in, as its tools need to know it. */
export interface CurrentTurn {
  owner: string;
  attempt: number;
  settled: (callId: string) => number;
}

/** A session that a runtime holds in memory now. */
export interface LiveSession {
  sdk: CopilotSession;
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
  told: string;
  turn: { now: CurrentTurn };
  busy: boolean;
  usedAt: number;
}

export interface SessionsParts {
  folder: string;
  runtime: Runtime;
  log: Log;
  maxLive: () => number;
  /** The provider, and the model's name as the provider knows it. */
  modelConfig: (model: string | undefined) => Pick<ResumeSessionConfig, "model" | "provider" | "gitHubToken">;
  /** Takes secrets out of a system message, which is made of pages, decisions and other people's words. */
  clean: (text: string) => string;
}

/** What the runtime would otherwise find, load, run or write down by itself; a project's files have no say in how IO works. */
const NOTHING_BY_ITSELF = {
  enableConfigDiscovery: false,
  skipCustomInstructions: true,
  enableOnDemandInstructionDiscovery: false,
  enableFileHooks: false,
  enableHostGitOperations: false,
  enableSessionStore: false,
  enableSessionTelemetry: false,
  enableFileChangeTracking: false,
  skipEmbeddingRetrieval: true,
  embeddingCacheStorage: "in-memory",
  customAgentsLocalOnly: true,
  coauthorEnabled: false,
  manageScheduleEnabled: false,
  includedBuiltinSkills: [],
  disabledMcpServers: ["github-mcp-server"],
  memory: { enabled: false },
  remoteSession: "off",
  // One way for every request; the other would be a socket that is kept open.
  capi: { enableWebSocketResponses: false },
} satisfies ResumeSessionConfig;

export function createSessions({ folder, runtime, log, maxLive, modelConfig, clean }: SessionsParts): Sessions {
  const entries = new Map<string, Entry>();

  async function open(
    spec: SessionSpec,
    turn: { now: CurrentTurn },
    life: Life,
    told: Told,
    continuePendingWork: boolean,
  ): Promise<CopilotSession> {
    const flush = () => life.client.rpc.sessions.save({ sessionId: spec.id }).then(() => undefined);
    const config: ResumeSessionConfig = {
      ...modelConfig(spec.model),
      // Also where nobody reads along: each piece is a sign of life.
      streaming: true,
      workingDirectory: spec.workingDirectory,
      systemMessage: { mode: "replace", content: told.system },
      tools: spec.tools.map((tool) => sdkTool(tool, turn, life, flush)),
      availableTools: told.skills.length > 0 ? ["custom:*", "builtin:skill"] : ["custom:*"],
      skillDirectories: told.skills,
      enableSkills: told.skills.length > 0,
      ...NOTHING_BY_ITSELF,
      toolSearch: { enabled: false },
      infiniteSessions: { enabled: true, backgroundCompactionThreshold: 0.8, bufferExhaustionThreshold: 0.95 },
      // Every tool is ours and passes the gate, which decides; the runtime's own question would only repeat it.
      onPermissionRequest: () => ({ kind: "approve-once" }),
    };
    if (!existsSync(sessionLog(folder, spec.id))) return life.client.createSession({ ...config, sessionId: spec.id });
    try {
      return await life.client.resumeSession(spec.id, { ...config, continuePendingWork });
    } catch (error) {
      if (!/session not found/i.test(messageOf(error))) throw error;
      log.warn("a session could not be resumed and is begun anew", { session: spec.id });
      return life.client.createSession({ ...config, sessionId: spec.id });
    }
  }

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

  return {
    async acquire(spec, now, { continuePendingWork = false } = {}) {
      const life = await runtime.life();
      const told = { system: clean(await spec.systemMessage()), skills: spec.skills?.() ?? [] };
      const key = JSON.stringify([told, modelConfig(spec.model).model]);
      const known = entries.get(spec.id);
      if (known && known.life === life && !life.isDead() && known.told === key && !continuePendingWork) {
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
      const sdk = await open(spec, turn, life, told, continuePendingWork);
      const entry: Entry = { sdk, life, told: key, turn, busy: true, usedAt: performance.now() };
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
      const file = sessionLog(folder, id);
      if (existsSync(file)) {
        const life = await runtime.life();
        await life.client.deleteSession(id).catch((error: unknown) => {
          if (!/not found/i.test(messageOf(error))) throw error;
        });
      }
      // A session that was made ready and never asked has a folder that the runtime does not count as one.
      if (basename(dirname(file)) === id) rmSync(dirname(file), { recursive: true, force: true });
    },
    liveCount: () => entries.size,
  };
}

interface Told {
  system: string;
  skills: string[];
}

function sdkTool(tool: EngineTool, turn: { now: CurrentTurn }, life: Life, flush: () => Promise<void>): SdkTool {
  return {
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters,
    // The runtime has tools of its own by some of these names; ours pass the gate, so ours are the ones to be run.
    overridesBuiltInTool: true,
    skipPermission: true,
    defer: "never",
    handler: async (args, invocation) => {
      const signal = invocation.signal ?? new AbortController().signal;
      const { ok, text } = await tool.call(args, {
        callId: invocation.toolCallId,
        sessionId: invocation.sessionId,
        ...turn.now,
        signal,
        flush,
      });
      // The SDK would write the answer to a pipe nobody reads; the journal has it, and the next life asks there.
      if (life.isDead()) await new Promise<never>(() => {});
      return { textResultForLlm: text, resultType: ok ? "success" : "failure" };
    },
  };
}
