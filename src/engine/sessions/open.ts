import { existsSync } from "node:fs";
import type { CopilotSession, ResumeSessionConfig } from "@github/copilot-sdk";
import { saysFull } from "../../lib/disk-room.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { indented } from "../../lib/quoted.ts";
import type { EngineTool } from "../../protocol/turns.ts";
import { resumeTrouble } from "../models/failures.ts";
import type { SessionSpec } from "../port.ts";
import type { RuntimeProcess } from "../runtime/process.ts";
import { type Inherited, roomFor } from "../wire/context.ts";
import { type Handover, handoverText, isEmpty, isToldWhole, NO_HANDOVER, type Said, withLatest } from "../wire/handover.ts";
import type { Generations } from "./generations.ts";
import type { PictureShelf } from "./pictures.ts";
import { isWhole, saidIn, sessionLog } from "./recover.ts";
import { type CurrentTurn, fitting, sdkTool } from "./tools.ts";

export interface SessionOpenerDeps {
  /** The runtime's home. */
  folder: string;
  generations: Generations;
  shelf: Pick<PictureShelf, "keep">;
  log: Log;
  /** The provider, and its name for the model. */
  modelConfig: (model: string | undefined) => Pick<ResumeSessionConfig, "model" | "provider" | "gitHubToken">;
  /** The model's window: prompt and answer together, in tokens. */
  windowOf: (model: string | undefined) => number;
  /** Redacts a system message, which is made of pages, decisions and other foreign text. */
  clean: (text: string) => string;
}

/** What a session is opened with. */
export interface Opening {
  spec: SessionSpec;
  life: RuntimeProcess;
  turn: { now: CurrentTurn };
  system: string;
  tools: readonly EngineTool[];
  /** Whether unanswered tool calls will still be answered. */
  continuePendingWork: boolean;
}

/** A runtime session, its id in the runtime, and what it began with. */
export interface OpenSession {
  sdk: CopilotSession;
  name: string;
  inherited: Inherited;
}

/** Switches off what the runtime would find, load, run or write by itself; a project's files must not change how IO works. */
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
  // One transport for every request; the alternative keeps a socket open.
  capi: { enableWebSocketResponses: false },
} satisfies ResumeSessionConfig;

/** Resumes sessions from their logs, and begins new ones where there is no log or it cannot be resumed. */
export function createSessionOpener({ folder, generations, shelf, log, modelConfig, windowOf, clean }: SessionOpenerDeps) {
  const inheritedBy = ({ id, model }: SessionSpec): Inherited => {
    const { handover } = generations.current(id);
    const room = roomFor(windowOf(model));
    const text = clean(handoverText(handover, room));
    return { handover, told: text && `${EARLIER}${indented(text)}`.toWellFormed(), isWhole: isToldWhole(handover, room) };
  };
  const configOf = ({ spec, life, turn, system, tools }: Opening, name: string, inherited: Inherited): ResumeSessionConfig => ({
    ...modelConfig(spec.model),
    // Always streamed, even without a listener: each chunk is a sign of life.
    streaming: true,
    workingDirectory: spec.workingDirectory,
    systemMessage: { mode: "replace", content: `${system}${inherited.told}` },
    tools: tools.map((tool) =>
      sdkTool(fitting(tool, windowOf(spec.model)), {
        turn,
        life,
        sessionId: name,
        keepPicture: (bytes) => shelf.keep(name, bytes),
        flush: () => life.client.rpc.sessions.save({ sessionId: name }).then(() => undefined),
      }),
    ),
    availableTools: ["custom:*"],
    ...NOTHING_BY_ITSELF,
    toolSearch: { enabled: false },
    // Our tools limit their own results; the runtime would write long ones to a file and show its name.
    largeOutput: { enabled: false },
    // The model proxy keeps requests within the window, and acts earlier than this.
    infiniteSessions: { enabled: true, backgroundCompactionThreshold: 0.98, bufferExhaustionThreshold: 0.99 },
    // Every tool is ours and passes the gate, so the runtime's own permission question is redundant.
    onPermissionRequest: () => ({ kind: "approve-once" }),
  });
  const make = async (opening: Opening, name: string): Promise<OpenSession> => {
    const inherited = inheritedBy(opening.spec);
    const sdk = await opening.life.client.createSession({ ...configOf(opening, name, inherited), sessionId: name });
    generations.begun(opening.spec.id);
    return { name, sdk, inherited };
  };
  const recordOf = ({ handover, model }: SessionSpec): Said => ({ role: "record", text: handover?.(windowOf(model)) ?? "" });
  /** The beginning of an empty session: everything its predecessor knew, or what its owner stored. */
  const handoverFor = (spec: SessionSpec): Handover => {
    const before = spec.follows?.();
    const earlier = before === undefined ? NO_HANDOVER : carryOver(folder, generations, before);
    const isLost = before === undefined || !existsSync(sessionLog(folder, generations.current(before).session));
    return isLost ? withLatest(earlier, [recordOf(spec)]) : earlier;
  };

  async function openOn(opening: Opening): Promise<OpenSession> {
    const { spec, life, continuePendingWork } = opening;
    const { session, handover, begun } = generations.current(spec.id);
    if (!existsSync(sessionLog(folder, session))) {
      const earlier = isEmpty(handover) ? handoverFor(spec) : begun ? withLatest(handover, [recordOf(spec)]) : handover;
      if (!isEmpty(earlier) && earlier !== handover) generations.hand(spec.id, earlier);
      return make(opening, session);
    }
    const beginAnew = (why: string) => {
      log.warn("a session cannot be resumed and is begun anew", { session, why });
      // What its log no longer contains may be in its owner's record.
      const said = saidIn(sessionLog(folder, session));
      generations.next(spec.id, withLatest(handover, [recordOf(spec), ...said]));
      return make(opening, generations.current(spec.id).session);
    };
    // Some versions of the runtime refuse a damaged log, others skip what they cannot read.
    if (!isWhole(sessionLog(folder, session))) return beginAnew("its log is damaged");
    const inherited = inheritedBy(spec);
    const config = { ...configOf(opening, session, inherited), continuePendingWork };
    const resume = async () => ({ name: session, sdk: await life.client.resumeSession(session, config), inherited });
    for (let tried = 1; ; tried += 1) {
      try {
        return await resume();
      } catch (error) {
        // A session that could not be written is intact: it is resumed when there is room.
        if (saysFull(messageOf(error))) throw error;
        const trouble = troubleOf(life, error);
        if (trouble === "runtime") throw error;
        if (trouble === "session" || tried > 1) return beginAnew(messageOf(error));
      }
    }
  }

  return async function open(opening: Opening): Promise<OpenSession> {
    try {
      return await openOn(opening);
    } catch (error) {
      // Its connection closes before its end is known: a retry must not use the same runtime.
      if (troubleOf(opening.life, error) === "runtime") await ended(opening.life);
      throw error;
    }
  };
}

const troubleOf = (life: RuntimeProcess, error: unknown) => (life.isDead() ? "runtime" : resumeTrouble(messageOf(error)));

/** How long a failing runtime may take to end, so that the next attempt finds its successor. */
const ENDING_MS = 2_000;

function ended(life: RuntimeProcess): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ENDING_MS);
    life.onDeath(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

const EARLIER = "\n\n## Said earlier in this conversation, before this session began\n";

/** A session's hand-over and everything said in it since, for its successor. */
export function carryOver(folder: string, generations: Generations, id: string): Handover {
  const { session, handover } = generations.current(id);
  return withLatest(handover, saidIn(sessionLog(folder, session)));
}
