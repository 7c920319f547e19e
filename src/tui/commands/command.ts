import type { Client } from "../../client/client.ts";

/** What a command receives. */
export interface CommandDeps {
  client: Client;
  conversation: string;
  /** The text after the command's name, split into words (`args`) and whole (`rest`). */
  args: string[];
  rest: string;
}

/** A chat command that runs without the model. */
export interface Command {
  name: string;
  /** The arguments, as the help shows them. */
  takes?: string;
  help: string;
  /** Returns the output in plain lines. */
  run(deps: CommandDeps): Promise<string>;
}

/** Aligns rows in columns. */
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

/** The start of a text, on one line. */
export function brief(text: string, most = 80): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

export const time = (iso: string): string => iso.slice(0, 16).replace("T", " ");
