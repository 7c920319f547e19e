import { existsSync, readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { CopilotSession, ResumeSessionConfig, Tool as SdkTool } from "@github/copilot-sdk";
import { messageOf } from "../lib/errors.ts";
import { clipToTokens, estimateTokens } from "../lib/estimate-tokens.ts";
import type { Log } from "../lib/log.ts";
import type { EngineTool } from "../protocol/turns.ts";
import type { Generations } from "./generations.ts";
import type { Life } from "./life.ts";
import type { SessionSpec } from "./port.ts";
import { isWhole, sessionLog } from "./recover.ts";
import type { Runtime } from "./runtime.ts";
import { roomFor } from "./wire/context.ts";

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
  /** The runtime's own name for it. */
  name: string;
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

export interface SessionsDeps {
  folder: string;
  runtime: Runtime;
  generations: Generations;
  log: Log;
  maxLive: () => number;
  /** The provider, and the model's name as the provider knows it. */
  modelConfig: (model: string | undefined) => Pick<ResumeSessionConfig, "model" | "provider" | "gitHubToken">;
  /** How many tokens the model takes, prompt and answer together. */
  windowOf: (model: string | undefined) => number;
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

export function createSessions({
  folder,
  runtime,
  generations,
  log,
  maxLive,
  modelConfig,
  windowOf,
  clean,
}: SessionsDeps): Sessions {
  const entries = new Map<string, Entry>();

  async function open(
    spec: SessionSpec,
    turn: { now: CurrentTurn },
    life: Life,
    told: Told,
    continuePendingWork: boolean,
  ): Promise<Pick<LiveSession, "sdk" | "name">> {
    const make = async (name: string) => ({ name, sdk: await life.client.createSession({ ...configOf(name), sessionId: name }) });
    const configOf = (name: string): ResumeSessionConfig => ({
      ...modelConfig(spec.model),
      // Also where nobody reads along: each piece is a sign of life.
      streaming: true,
      workingDirectory: spec.workingDirectory,
      systemMessage: { mode: "replace", content: withHandover(told.system, clean(generations.current(spec.id).handover)) },
      tools: told.tools.map((tool) =>
        sdkTool(fitting(tool, windowOf(spec.model)), turn, life, spec.id, () =>
          life.client.rpc.sessions.save({ sessionId: name }).then(() => undefined),
        ),
      ),
      availableTools: ["custom:*"],
      ...NOTHING_BY_ITSELF,
      toolSearch: { enabled: false },
      // The tools cut their results themselves; the runtime would put what is long into a file and show its name.
      largeOutput: { enabled: false },
      // The door keeps every request within the window, earlier than this.
      infiniteSessions: { enabled: true, backgroundCompactionThreshold: 0.98, bufferExhaustionThreshold: 0.99 },
      // Every tool is ours and passes the gate, which decides; the runtime's own question would only repeat it.
      onPermissionRequest: () => ({ kind: "approve-once" }),
    });
    const { session, handover } = generations.current(spec.id);
    if (!existsSync(sessionLog(folder, session))) {
      const earlier = handover ? "" : (spec.handover?.(windowOf(spec.model)) ?? "");
      if (earlier) generations.hand(spec.id, earlier);
      return make(session);
    }
    const beginAnew = (why: string) => {
      log.warn("a session cannot be resumed and is begun anew", { session, why });
      generations.next(spec.id, spec.handover?.(windowOf(spec.model)) || handover);
      return make(generations.current(spec.id).session);
    };
    // Some versions of the runtime refuse a damaged log, others pass over what they cannot read.
    if (!isWhole(sessionLog(folder, session))) return beginAnew("its log is damaged");
    try {
      return { name: session, sdk: await life.client.resumeSession(session, { ...configOf(session), continuePendingWork }) };
    } catch (error) {
      if (life.isDead()) throw error;
      return beginAnew(messageOf(error));
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
      const told: Told = {
        system: clean(await spec.systemMessage(window)).toWellFormed(),
        tools: toolsFor(spec, window),
      };
      const key = JSON.stringify([
        told.system,
        told.tools.map(({ name }) => name),
        modelConfig(spec.model).model,
        generations.current(spec.id).session,
      ]);
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
      const opened = await open(spec, turn, life, told, continuePendingWork);
      if (known && known.name !== opened.name) await erase(known.name);
      const entry: Entry = { ...opened, life, told: key, turn, busy: true, usedAt: performance.now() };
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

interface Told {
  system: string;
  tools: EngineTool[];
}

function withHandover(system: string, handover: string): string {
  return handover
    ? `${system}\n\n## Said earlier in this conversation, before this session began\n${handover}`.toWellFormed()
    : system;
}

/** In a small window only what is essential is offered: the tools may take a quarter of it. */
function toolsFor({ tools, essential }: SessionSpec, window: number): EngineTool[] {
  if (!essential) return tools;
  const cost = estimateTokens(JSON.stringify(tools.map(({ name, description, parameters }) => [name, description, parameters])));
  return cost <= roomFor(window) / 4 ? tools : tools.filter(({ name }) => essential.includes(name));
}

/** A tool whose results leave room for the rest of the conversation. */
function fitting(tool: EngineTool, window: number): EngineTool {
  const most = Math.floor(roomFor(window) / 4);
  return {
    ...tool,
    call: async (args, invocation) => {
      const { ok, text } = await tool.call(args, invocation);
      const cut = clipToTokens(text, most);
      return {
        ok,
        text:
          cut === text ? text : `${cut}\n[The rest was cut: it does not fit into the model's window. Ask for a smaller part.]`,
      };
    },
  };
}

function sdkTool(
  tool: EngineTool,
  turn: { now: CurrentTurn },
  life: Life,
  sessionId: string,
  flush: () => Promise<void>,
): SdkTool {
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
        sessionId,
        ...turn.now,
        signal,
        flush,
      });
      // The SDK would write the answer to a pipe nobody reads; the journal has it, and the next life asks there.
      if (life.isDead()) await new Promise<never>(() => {});
      return { textResultForLlm: text.toWellFormed(), resultType: ok ? "success" : "failure" };
    },
  };
}
