import { existsSync, readFileSync, statSync, watchFile } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { ExitCode } from "../lib/errors.ts";
import { terminalSafe } from "../lib/terminal-safe.ts";
import { wholeNumber } from "./input.ts";
import type { Shell } from "./output.ts";

export function logsCommand(program: Command, shell: Shell): void {
  program
    .command("logs")
    .description("the daemon's log")
    .option("-f, --follow", "go on with what comes")
    .option("-n, --lines <count>", "how many lines", "100")
    .option("--json", "print one JSON document (with -f: one a line)")
    .action(async (options: { follow?: boolean; lines: string; json?: boolean }) => {
      const file = join(shell.paths.logs, "io.log");
      const most = wholeNumber("--lines", options.lines);
      const lines = existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n").slice(-most) : [];
      const items = lines.filter(Boolean).map(readLine);
      if (options.json && !options.follow) return shell.print({ items }, "", options);
      for (const item of items) process.stdout.write(options.json ? `${JSON.stringify(item)}\n` : `${shown(item)}\n`);
      if (options.follow) await follow(file, options.json === true);
    });
}

interface LogLine {
  time: string;
  level: string;
  message: string;
  [field: string]: unknown;
}

/** Parses a line of the log; one that a crash cut off is shown unchanged. */
function readLine(text: string): LogLine {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return { time: "", level: "cut", message: text };
  }
}

function shown({ time, level, message, ...fields }: LogLine): string {
  const rest = Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : "";
  return terminalSafe(`${time.slice(0, 19).replace("T", " ")} ${level.padEnd(5)} ${message}${rest}`);
}

/** A line of the log for a person. */
export function readableLine(text: string): string {
  return shown(readLine(text));
}

async function follow(file: string, json: boolean): Promise<void> {
  let size = existsSync(file) ? statSync(file).size : 0;
  let rest = "";
  watchFile(file, { interval: 200 }, (now) => {
    if (now.size < size) size = 0;
    const text = readFileSync(file).subarray(size).toString("utf8");
    size += Buffer.byteLength(text);
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) process.stdout.write(`${json ? line : readableLine(line)}\n`);
  });
  await new Promise<void>((ended) => process.once("SIGINT", () => ended()));
  process.exit(ExitCode.interrupted);
}
