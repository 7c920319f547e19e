import type { EngineTool, TurnRequest, TurnResult } from "../protocol/turns.ts";

export type EngineKind = "copilot" | "provider" | "ollama" | "rehearsal";
export type EngineState = "starting" | "ready" | "restarting" | "stopped" | "failed";

export interface EngineStatus {
  kind: EngineKind;
  state: EngineState;
  model: string;
  /** Warnings a person should see, such as a model that was not there. */
  notes: string[];
  /** How many conversations the runtime holds in memory now. */
  liveSessions: number;
}

export type Tier = "high" | "medium" | "low";

export interface SessionSpec {
  /** Chosen by the caller and kept by it: the same id later is the same conversation. */
  id: string;
  /** A model's name; the engine's own model if none is given or the name is not available. */
  model?: string;
  /** Asked before every turn: a change reaches the model without a new session. */
  systemMessage: () => string | Promise<string>;
  tools: EngineTool[];
  workingDirectory: string;
  streaming: boolean;
  /** Folders with skills, asked before every turn. */
  skills?: () => string[];
}

/** One conversation with a model. One turn at a time; a turn never rejects. */
export interface Session {
  readonly id: string;
  run(request: TurnRequest): Promise<TurnResult>;
  /** Makes or resumes the session before it is needed, so that its first turn need not wait for that. Never rejects. */
  prepare(): Promise<void>;
}

/** The Copilot runtime, behind the only door the rest of IO knows. */
export interface Engine {
  start(): Promise<void>;
  stop(): Promise<void>;
  status(): EngineStatus;
  /** Nothing is started by this: the session is made or resumed when it is first used. */
  session(spec: SessionSpec): Session;
  /** Forgets a session, on disk too. */
  deleteSession(id: string): Promise<void>;
  /** The model that serves a tier, and why. */
  modelFor(tier: Tier): { model: string; reason: string };
  models(): Promise<{ id: string; name: string }[]>;
}
