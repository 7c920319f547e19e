import type { EngineTool, TurnRequest, TurnResult } from "../protocol/turns.ts";

export type EngineKind = "copilot" | "provider" | "ollama" | "rehearsal";
export type EngineState = "starting" | "ready" | "restarting" | "stopped" | "failed";

export interface EngineStatus {
  kind: EngineKind;
  state: EngineState;
  model: string;
  /** Why this engine and model were chosen. */
  why: string;
  /** Warnings for the user, such as a missing model. */
  notes: string[];
  /** The Copilot runtime; its version is null until it has started. */
  runtime: { version: string | null; tested: boolean };
  /** How many conversations the runtime has in memory. */
  liveSessions: number;
}

/** The model that serves for a name. If the user chose the name, the caller must refuse a substitute or report it. */
export interface Serving {
  /** The provider's name for it. */
  model: string;
  standsIn: boolean;
  /** The embedded model substitutes for every other, without permission. */
  rehearsal?: true;
}

/** Where the assumed window comes from. */
export type WindowSource = "config" | "provider" | "refusal" | "name" | "default";

/** What is known of a model. */
export interface ModelReport {
  model: string;
  /** In tokens, prompt and answer together. */
  window: number;
  windowFrom: WindowSource;
  tools?: boolean;
  chats?: boolean;
}

export type Tier = "high" | "medium" | "low";

export interface SessionSpec {
  /** Chosen and stored by the caller: the same id later means the same conversation. */
  id: string;
  /** The model, by the name that `serving` returned; by default the engine's own. */
  model?: string;
  /** Called before every turn with the model's window in tokens, so that changes need no new session. */
  systemMessage: (window: number) => string | Promise<string>;
  tools: EngineTool[];
  /** The tools that stay when the window is too small for all. By default all stay. */
  essential?: readonly string[];
  workingDirectory: string;
  /** What was said before, for a session that must begin again because its log is gone. */
  handover?: (window: number) => string;
  /** The preceding session, if any: read when this one begins, and handed over to it. */
  follows?: () => string | undefined;
}

/** One conversation with a model. One turn at a time; a turn never rejects. */
export interface Session {
  readonly id: string;
  run(request: TurnRequest): Promise<TurnResult>;
  /** Opens the session in advance, so that its first turn need not wait. Never rejects. */
  prepare(): Promise<void>;
}

/** The Copilot runtime, behind the only interface that other folders use. */
export interface Engine {
  start(): Promise<void>;
  stop(): Promise<void>;
  status(): EngineStatus;
  /** Starts nothing: the session is created or resumed at its first use. */
  session(spec: SessionSpec): Session;
  /** Forgets a session, on disk too. */
  deleteSession(id: string): Promise<void>;
  /** The model of a tier, and why. */
  modelFor(tier: Tier): { model: string; reason: string };
  /** The model that serves for a name: itself, or a substitute if it is missing. */
  serving(name: string): Promise<Serving>;
  models(): Promise<{ id: string; name: string }[]>;
  /** What is known of a model before it is used; by default of the engine's own. */
  about(name?: string): Promise<ModelReport>;
}
