import type { Client } from "../../client/client.ts";

/** What a command is handed. */
export interface CommandDeps {
  client: Client;
  conversation: string;
  /** What stands behind the command's name, by its words and whole. */
  args: string[];
  rest: string;
}

/** What a command of the chat does, without the model. */
export interface Command {
  name: string;
  /** What it takes, as the help shows it. */
  takes?: string;
  help: string;
  /** The answer, in plain lines. */
  run(deps: CommandDeps): Promise<string>;
}

/** Lines with their columns under each other. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, index) => Math.max(...rows.map((row) => (row[index] ?? "").length)));
  return rows
    .map((row) =>
      row
        .map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index] ?? 0)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** The beginning of a text on one line. */
export function brief(text: string, most = 80): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

export const time = (iso: string): string => iso.slice(0, 16).replace("T", " ");
