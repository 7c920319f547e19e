import type { z } from "zod";
import type { ApprovalMode } from "../lib/safety-config.ts";
import type { Stand } from "../process/sandbox.ts";

/** Where a tool stands while it works: whose hands it is in, and in which folder. */
export interface ToolScope {
  /** Relative paths and commands stand here. */
  cwd: string;
  /** The folder that files are written in and nowhere else, if there is such a border. */
  within?: string;
  /** The project worked on, where that is not the folder stood in: rules that a person keeps for a project hold there. */
  project?: string;
  /** When a person is asked, where that is more often than the config says. */
  approvals?: ApprovalMode;
  /** What commands may do there beyond, or short of, what they usually may. */
  stand?: Stand;
  /** Has what touches the host done on another one; undefined for a call that is to be done here. */
  elsewhere?: Elsewhere;
  /** Which agent calls, for the audit: "orchestrator", "squad:web/Hannibal", "swarm:engineer". */
  actor: string;
}

/** A call that has passed the gate, by its ids, on its way to another host. */
export interface Passed {
  sessionId: string;
  callId: string;
  args: Record<string, unknown>;
  signal: AbortSignal;
}
/** Answers with the text the model reads, and throws as a tool does. */
export type Elsewhere = (passed: Passed) => Promise<string> | undefined;

export interface ToolContext extends ToolScope {
  signal: AbortSignal;
  /** The message, task or step this call belongs to. */
  owner: string;
}

/** A place in the file system that a call reaches, as the model spelled it. */
export interface Touch {
  path: string;
  how: "read" | "write";
}

/** A tool as a feature brings it. */
export interface Tool<S extends z.ZodObject = z.ZodObject> {
  name: string;
  description: string;
  schema: S;
  /** A "read" may be run again after a crash; an "effect" never is. */
  kind: "read" | "effect" | ((args: z.output<S>) => "read" | "effect");
  /**
   * The paths a call reaches, so that the policy can judge them. A tool without it reaches none of the model's choosing, or
   * judges them itself when it opens them and throws a Refusal.
   */
  touches?: (args: z.output<S>) => Touch[];
  /** It works on the files or the processes of the host that the agent is on. */
  onHost?: true;
  deadlineMs: number | ((args: z.output<S>) => number);
  /** Answers with the text the model reads. Throws a ToolError when it could not do it. */
  run: (args: z.output<S>, context: ToolContext) => Promise<string>;
}

/** A failure the model can act on: its message is what the model reads. */
export class ToolError extends Error {
  override readonly name = "ToolError";
}

/** A call that may not be made, so that nothing of it was done. */
export class Refusal extends ToolError {}

/** Lets the handler's arguments be inferred from the schema. */
export function tool<S extends z.ZodObject>(definition: Tool<S>): Tool {
  return definition as unknown as Tool;
}
