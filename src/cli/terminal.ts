import { existsSync } from "node:fs";
import { pathsOf } from "../lib/paths.ts";
import { terminalSafe } from "../lib/terminal-safe.ts";
import { Terminal } from "../tui/terminal.ts";

/** The first thing that is loaded: the chat's prompt is there before the rest of IO is, and every other command is left to that. */
export async function main(program: "io" | "swarm", args: readonly string[]): Promise<void> {
  const { stdin: input, stdout: output, env } = process;
  const { home } = pathsOf(env);
  if (!existsSync(home) && !(await mended(home))) return;
  const isChat = program === "io" && args.length === 0 && input.isTTY && output.isTTY && env.TERM !== "dumb";
  if (!isChat) return (await import("./io.ts")).main(program, args);
  // A terminal that is gone takes no more words.
  output.on("error", () => process.exit());
  const connect = async () => (await import("./chat.ts")).reachDaemon();
  try {
    await new Terminal({ connect, conversation: "main", home, env, input, output }).run();
  } catch (error) {
    (await import("./output.ts")).report(error, { json: false });
  }
  process.exit();
}

/** A home that is missing may only wait for the last step of a restore. False: it could not be seen to. */
async function mended(home: string): Promise<boolean> {
  try {
    const told = (await import("../backup/interrupted.ts")).finishRestore(home);
    if (told !== undefined) process.stderr.write(`${terminalSafe(told)}\n`);
    return true;
  } catch (error) {
    (await import("./output.ts")).report(error, { json: process.argv.includes("--json") });
    return false;
  }
}
