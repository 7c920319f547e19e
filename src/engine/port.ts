import type { EngineTool, TurnRequest, TurnResult } from "../protocol/turns.ts";

export type EngineKind = "copilot" | "provider" | "ollama" | "rehearsal";
export type EngineState = "starting" | "ready" | "restarting" | "stopped" | "failed";

export interface EngineStatus {
  kind: EngineKind;
  state: EngineState;
  model: string;
  /** Warnings a person should see, such as a model that was not there. */
  notes: string[];
  /** The Copilot runtime that serves; its version is null until it has started. */
  runtime: { version: string | null; tested: boolean };
  /** How many conversations the runtime holds in memory now. */
  liveSessions: number;
}

/** The model that answers to a name. A caller whose user chose the name must refuse a stand-in, or say so. */
export interface Serving {
  /** As the provider knows it. */
  model: string;
  standsIn: boolean;
}

/** Where the window that IO reckons with was read. */
export type WindowSource = "config" | "provider" | "refusal" | "name" | "default";

/** What is known of a model, and where its window was read. */
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
  /** Chosen by the caller and kept by it: the same id later is the same conversation. */
  id: string;
  /** The model to ask, by the name that `serving` gave; the engine's own model if none is given. */
  model?: string;
  /** Asked before every turn, with the model's window in tokens: a change reaches the model without a new session. */
  systemMessage: (window: number) => string | Promise<string>;
  tools: EngineTool[];
  /** The tools, by name, that stay when the model's window is too small for all. Without this, all stay. */
  essential?: readonly string[];
  workingDirectory: string;
  /** What was said before, for a session that has to be begun anew because its own record is gone. */
  handover?: (window: number) => string;
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
  /** Which model answers to a name: the one of that name, or a stand-in where it is not there. */
  serving(name: string): Promise<Serving>;
  models(): Promise<{ id: string; name: string }[]>;
  /** What is known of a model before it is asked; of the engine's own if none is named. */
  about(name?: string): Promise<ModelReport>;
}
