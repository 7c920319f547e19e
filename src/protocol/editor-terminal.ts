import { z } from "zod";

/** The most output of a command that an editor is asked to keep, in bytes; it keeps the end. */
export const TERMINAL_BYTES = 64_000;

/** A command for an editor's terminal. */
export const TerminalCommand = z.object({
  program: z.string(),
  args: z.array(z.string()),
  cwd: z.string(),
  /** Variables besides the editor's own. */
  env: z.record(z.string(), z.string()),
});
export type TerminalCommand = z.infer<typeof TerminalCommand>;

const Why = z.string().max(500);

/** How a command in an editor's terminal ended; "lost" if nobody knows. */
export const TerminalEnd = z.discriminatedUnion("how", [
  z.strictObject({
    how: z.literal("exited"),
    /** Null if a signal ended it. */
    code: z.number().int().nullable(),
    output: z.string().max(2 * TERMINAL_BYTES),
    /** Whether the beginning of the output is missing. */
    isCut: z.boolean(),
  }),
  z.strictObject({ how: z.literal("not-started"), why: Why }),
  z.strictObject({ how: z.literal("lost"), why: Why }),
]);
export type TerminalEnd = z.infer<typeof TerminalEnd>;

/** What an editor's process says of a command. The first report, which holds nothing, asks for it: one process is given it, once. */
export const TerminalReport = z.strictObject({
  /** Output since the last report. */
  printed: z.string().max(TERMINAL_BYTES).optional(),
  end: TerminalEnd.optional(),
});
export type TerminalReport = z.infer<typeof TerminalReport>;

export const TerminalOrders = z.object({
  /** The command is to be killed, or nobody waits for it any more. */
  stop: z.boolean(),
  /** What to run; missing if another process was given it. */
  run: TerminalCommand.optional(),
});
export type TerminalOrders = z.infer<typeof TerminalOrders>;

/** The call that a command belongs to, and how to follow it. */
export interface TerminalCall {
  message: string;
  callId: string;
  signal: AbortSignal;
  onOutput?: (text: string) => void;
}

/** Runs a command in an editor's terminal; "unanswered" if no editor took it, so that it did not run. Never rejects. */
export type EditorTerminal = (command: TerminalCommand, call: TerminalCall) => Promise<TerminalEnd | { how: "unanswered" }>;
