import type { z } from "zod";
import type { ApprovalMode, Mode } from "../home/safety-config.ts";
import type { FileIdentity } from "../lib/pinned/identity.ts";
import type { SandboxProfile } from "../process/sandbox.ts";
import type { EditorTerminal } from "../protocol/editor-terminal.ts";
import type { FileEdit } from "../protocol/messages.ts";
import type { FormAnswer, PersonForm } from "../protocol/person-form.ts";

/** Who calls a tool, from which folder, and what that call may do. */
export interface ToolScope {
  /** The folder that relative paths and commands start from. */
  cwd: string;
  /** If set, files may be written in this folder only. */
  within?: string;
  /** Further folders that may be written: worktrees of the other repositories that the same work changes. */
  besides?: readonly string[];
  /** The project being worked on, if it is not `cwd`. Approval rules kept for a project apply to it. */
  project?: string;
  /** The conversation's own mode, which replaces the global one. */
  mode?: Mode | undefined;
  /** A squad's mode, which counts if it is stricter than the global one. */
  strictest?: Mode | undefined;
  /** Tools that are off limits because a program, not a person, asked for the work. */
  withheld?: readonly string[];
  /** When to ask a person, if that is more often than the config says. */
  approvals?: ApprovalMode;
  /** The files and folders as they were when the call was approved. If they have changed since, it is not made. */
  approved?: readonly FileIdentity[];
  /** A user's rule allowed the call by its text alone; nobody has checked what it does in this folder. */
  byRule?: true;
  /** The text of a file in the user's editor, unsaved changes included; undefined if it is not open there. */
  editorText?: (path: string) => Promise<string | undefined>;
  /** Asks the user to fill in a form in their editor; undefined if no editor can show one. */
  askPerson?: (form: PersonForm, signal: AbortSignal) => Promise<FormAnswer>;
  /** Runs a command in the terminal of the user's editor, outside the sandbox. */
  editorTerminal?: EditorTerminal;
  /** How the sandbox differs from its usual settings for these commands. */
  profile?: SandboxProfile;
  /** Why the call may not continue with other arguments, such as the target of a redirect. If missing, it always may. */
  whyNot?: (args: Record<string, unknown>) => string | undefined;
  /** Which agent calls, for the audit: "orchestrator", "squad:web/Hannibal", "swarm:engineer". */
  actor: string;
}

export interface ToolContext extends ToolScope {
  signal: AbortSignal;
  /** The message, task or step this call belongs to. */
  owner: string;
  /** The model's id of the call. */
  callId?: string;
  /** Receives what the call prints, as it is printed. */
  onOutput?: (text: string) => void;
  /** Receives a small edit's effect on a file. */
  onEdit?: (edit: FileEdit) => void;
  /** Shows the model a picture. Returns the placeholder to use for it in the result. */
  showPicture?: (bytes: Uint8Array) => Promise<string>;
  /**
   * Reports an effect that continues after its call was answered. What it changes before `until` resolves or the turn ends counts
   * as the turn's.
   */
  lasts?: (until: Promise<void>) => void;
}

/** A path that a call accesses, as the model spelled it. */
export interface Touch {
  path: string;
  how: "read" | "write";
}

/** The paths that a call may change, as the model spelled them; with `below`, also anything in them. */
export interface Writes {
  paths: readonly string[];
  below?: true;
}

/** A tool, as a feature defines it. */
export interface Tool<S extends z.ZodObject = z.ZodObject> {
  name: string;
  description: string;
  schema: S;
  /**
   * The JSON Schema to show the model, for a tool described by somebody else; `schema` then checks the arguments unchanged.
   * If missing, the model is shown `schema`, and unknown arguments are refused.
   */
  parameters?: Record<string, unknown>;
  /** The MCP server that does the work, outside the sandbox for commands. */
  server?: string;
  /** A "read" may be run again after a crash; an "effect" never is. */
  kind: "read" | "effect" | ((args: z.output<S>) => "read" | "effect");
  /**
   * The paths that a call accesses, for the policy to check. A tool without it accesses no path chosen by the model, or checks
   * paths itself as it opens them and throws a Refusal.
   */
  touches?: (args: z.output<S>) => Touch[];
  /** The same tool without its effects, for the mode "plan". Missing if every call is an effect. */
  reading?: Tool;
  /** What an effect may change in the user's folders, so that it can be undone. Missing if it changes nothing there. */
  writes?: (args: z.output<S>) => Writes;
  /** The tool works with files or processes on the host where the agent runs. */
  onHost?: true;
  deadlineMs: number | ((args: z.output<S>) => number);
  /** Called when the turn of a message, task or step is over, before its changes are evaluated. */
  turnEnded?: (owner: string) => Promise<void>;
  /** Returns the text for the model. Throws a ToolError on failure. */
  run: (args: z.output<S>, context: ToolContext) => Promise<string>;
}

/** A failure that the model can act on: it reads the message. */
export class ToolError extends Error {
  override readonly name = "ToolError";
}

/** A failure that leaves open whether the effect took place. */
export class UnknownOutcome extends ToolError {}

/** The call is not allowed, and nothing was done. */
export class Refusal extends ToolError {}

/** Infers the handler's arguments from the schema. */
export function tool<S extends z.ZodObject>(definition: Tool<S>): Tool {
  return definition as unknown as Tool;
}

/** The tools that remain when nothing may be changed. */
export function readingTools(tools: readonly Tool[]): Tool[] {
  return tools.flatMap((each) => (each.kind === "read" ? [each] : each.reading ? [each.reading] : []));
}
