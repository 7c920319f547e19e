import { pathsOf } from "../lib/paths.ts";
import { Terminal } from "../tui/terminal.ts";

/** The first thing that is loaded: the chat's prompt is there before the rest of IO is, and every other command is left to that. */
export async function main(program: "io" | "swarm", args: readonly string[]): Promise<void> {
  const { stdin: input, stdout: output, env } = process;
  const isChat = program === "io" && args.length === 0 && input.isTTY && output.isTTY && env.TERM !== "dumb";
  if (!isChat) return (await import("./io.ts")).main(program, args);
  // A terminal that is gone takes no more words.
  output.on("error", () => process.exit());
  const connect = async () => (await import("./chat.ts")).reachDaemon();
  try {
    await new Terminal({ connect, conversation: "main", home: pathsOf(env).home, env, input, output }).run();
  } catch (error) {
    (await import("./output.ts")).report(error, { json: false });
  }
  process.exit();
}
