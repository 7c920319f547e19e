import { existsSync } from "node:fs";
import type { CopilotSession, ResumeSessionConfig } from "@github/copilot-sdk";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { indented } from "../lib/quoted.ts";
import type { EngineTool } from "../protocol/turns.ts";
import type { Generations } from "./generations.ts";
import type { Life } from "./life.ts";
import type { SessionSpec } from "./port.ts";
import { isWhole, sessionLog } from "./recover.ts";
import { type CurrentTurn, fitting, sdkTool } from "./session-tools.ts";

export interface SessionOpenerDeps {
  /** The runtime's home. */
  folder: string;
  generations: Generations;
  log: Log;
  /** The provider, and the model's name as the provider knows it. */
  modelConfig: (model: string | undefined) => Pick<ResumeSessionConfig, "model" | "provider" | "gitHubToken">;
  /** How many tokens the model takes, prompt and answer together. */
  windowOf: (model: string | undefined) => number;
  /** Takes secrets out of a system message, which is made of pages, decisions and other people's words. */
  clean: (text: string) => string;
}

/** What a session is opened with. */
export interface Opening {
  spec: SessionSpec;
  life: Life;
  turn: { now: CurrentTurn };
  system: string;
  tools: readonly EngineTool[];
  /** Whether tool calls that nobody answered are still to be answered. */
  continuePendingWork: boolean;
}

/** A session of the runtime, and the runtime's own name for it. */
export interface OpenSession {
  sdk: CopilotSession;
  name: string;
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

/** Resumes sessions from their logs, and begins anew those that have none or cannot be resumed. */
export function createSessionOpener({ folder, generations, log, modelConfig, windowOf, clean }: SessionOpenerDeps) {
  const configOf = ({ spec, life, turn, system, tools }: Opening, name: string): ResumeSessionConfig => ({
    ...modelConfig(spec.model),
    // Also where nobody reads along: each piece is a sign of life.
    streaming: true,
    workingDirectory: spec.workingDirectory,
    systemMessage: { mode: "replace", content: withHandover(system, clean(generations.current(spec.id).handover)) },
    tools: tools.map((tool) =>
      sdkTool(fitting(tool, windowOf(spec.model)), {
        turn,
        life,
        sessionId: spec.id,
        flush: () => life.client.rpc.sessions.save({ sessionId: name }).then(() => undefined),
      }),
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
  const make = async (opening: Opening, name: string): Promise<OpenSession> => ({
    name,
    sdk: await opening.life.client.createSession({ ...configOf(opening, name), sessionId: name }),
  });

  return async function open(opening: Opening): Promise<OpenSession> {
    const { spec, life, continuePendingWork } = opening;
    const { session, handover } = generations.current(spec.id);
    if (!existsSync(sessionLog(folder, session))) {
      const earlier = handover ? "" : (spec.handover?.(windowOf(spec.model)) ?? "");
      if (earlier) generations.hand(spec.id, earlier);
      return make(opening, session);
    }
    const beginAnew = (why: string) => {
      log.warn("a session cannot be resumed and is begun anew", { session, why });
      generations.next(spec.id, spec.handover?.(windowOf(spec.model)) || handover);
      return make(opening, generations.current(spec.id).session);
    };
    // Some versions of the runtime refuse a damaged log, others pass over what they cannot read.
    if (!isWhole(sessionLog(folder, session))) return beginAnew("its log is damaged");
    try {
      const sdk = await life.client.resumeSession(session, { ...configOf(opening, session), continuePendingWork });
      return { name: session, sdk };
    } catch (error) {
      if (life.isDead()) throw error;
      return beginAnew(messageOf(error));
    }
  };
}

function withHandover(system: string, handover: string): string {
  return handover
    ? `${system}\n\n## Said earlier in this conversation, before this session began\n${indented(handover)}`.toWellFormed()
    : system;
}
