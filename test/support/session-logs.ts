import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The logs of the runtime's sessions in a data folder. */
export function sessionLogs(home: string): string[] {
  const folder = join(home, "sessions", "session-state");
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.map((name) => join(folder, name, "events.jsonl")).filter((log) => existsSync(log));
}

/** Cuts one line of a log in half. */
export function breakLine(log: string, index: number): void {
  const lines = readFileSync(log, "utf8").split("\n");
  const line = lines[index];
  if (line) lines[index] = line.slice(0, Math.floor(line.length / 2));
  writeFileSync(log, lines.join("\n"));
}
