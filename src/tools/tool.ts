import type { z } from "zod";
import type { ApprovalMode, Mode } from "../home/safety-config.ts";
import type { FileIdentity } from "../lib/pinned/identity.ts";
import type { SandboxProfile } from "../process/sandbox.ts";
import type { FileEdit } from "../protocol/messages.ts";

/** Where a tool stands while it works: whose hands it is in, and in which folder. */
export interface ToolScope {
  /** Relative paths and commands stand here. */
  cwd: string;
  /** The folder that files are written in and nowhere else, if there is such a border. */
  within?: string;
  /** Folders besides that one which files may be written in: the trees of the other repositories that one piece of work changes. */
  besides?: readonly string[];
  /** The project worked on, where that is not the folder stood in: rules that a person keeps for a project hold there. */
  project?: string;
  /** The conversation's own mode, in place of the one for everything. */
  mode?: Mode | undefined;
  /** A squad's mode, which counts where it is stricter than the one for everything. */
  strictest?: Mode | undefined;
  /** Tools that may not be used, because a program and no person asked for the work. */
  withheld?: readonly string[];
  /** When a person is asked, where that is more often than the config says. */
  approvals?: ApprovalMode;
  /** The files and folders that a call was allowed for, as they were then; it is made with these or not at all. */
  approved?: readonly FileIdentity[];
  /** The text of a file as the person's editor holds it; undefined where it does not. */
  editorText?: (path: string) => Promise<string | undefined>;
  /** What commands may do there beyond, or short of, what they usually may. */
  stand?: SandboxProfile;
  /** Says why the call may not go on with other arguments, such as where a page leads on to; without it, it may. */
  whyNot?: (args: Record<string, unknown>) => string | undefined;
  /** Which agent calls, for the audit: "orchestrator", "squad:web/Hannibal", "swarm:engineer". */
  actor: string;
}

export interface ToolContext extends ToolScope {
  signal: AbortSignal;
  /** The message, task or step this call belongs to. */
  owner: string;
  /** Told what a call prints, as it comes. */
  onOutput?: (text: string) => void;
  /** Told what an edit did to a file, if that is small. */
  onEdit?: (edit: FileEdit) => void;
  /** Shows the model a picture: answers with what stands for it in the result's text. */
  showPicture?: (bytes: Uint8Array) => Promise<string>;
  /** Told of an effect that goes on after its call was answered: what it changes until then, or until the turn ends, is the turn's. */
  lasts?: (until: Promise<void>) => void;
}

/** A place in the file system that a call reaches, as the model spelled it. */
export interface Touch {
  path: string;
  how: "read" | "write";
}

/** What a call may change, as the model spelled it: these very files and folders, or with `below` anything in them. */
export interface Writes {
  paths: readonly string[];
  below?: true;
}

/** A tool as a feature brings it. */
export interface Tool<S extends z.ZodObject = z.ZodObject> {
  name: string;
  description: string;
  schema: S;
  /**
   * The JSON Schema that a model is shown, for a tool that somebody else describes. `schema` then checks the arguments as it
   * stands; without this the model is shown `schema` itself, and no other arguments are taken.
   */
  parameters?: Record<string, unknown>;
  /** The MCP server that does the work, outside the sandbox that commands are held in. */
  server?: string;
  /** A "read" may be run again after a crash; an "effect" never is. */
  kind: "read" | "effect" | ((args: z.output<S>) => "read" | "effect");
  /**
   * The paths a call reaches, so that the policy can judge them. A tool without it reaches none of the model's choosing, or
   * judges them itself when it opens them and throws a Refusal.
   */
  touches?: (args: z.output<S>) => Touch[];
  /** The same tool without its effects, for the mode "plan". A tool whose every call is an effect has none. */
  reading?: Tool;
  /** What an effect may change in people's folders, so that it can be undone; missing for one that changes nothing there. */
  writes?: (args: z.output<S>) => Writes;
  /** It works on the files or the processes of the host that the agent is on. */
  onHost?: true;
  deadlineMs: number | ((args: z.output<S>) => number);
  /** Called when the turn of a message, task or step is over, before anything is made of what it did. */
  turnEnded?: (owner: string) => Promise<void>;
  /** Answers with the text the model reads. Throws a ToolError when it could not do it. */
  run: (args: z.output<S>, context: ToolContext) => Promise<string>;
}

/** A failure the model can act on: its message is what the model reads. */
export class ToolError extends Error {
  override readonly name = "ToolError";
}

/** A failure after which nobody knows whether an effect took place. */
export class UnknownOutcome extends ToolError {}

/** A call that may not be made, so that nothing of it was done. */
export class Refusal extends ToolError {}

/** Lets the handler's arguments be inferred from the schema. */
export function tool<S extends z.ZodObject>(definition: Tool<S>): Tool {
  return definition as unknown as Tool;
}

/** What is left of these tools where nothing may be changed. */
export function readingTools(tools: readonly Tool[]): Tool[] {
  return tools.flatMap((each) => (each.kind === "read" ? [each] : each.reading ? [each.reading] : []));
}
