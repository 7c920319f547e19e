import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withFolder } from "../lib/pinned/folder.ts";
import { readPlain } from "../lib/pinned/read.ts";
import { createFile } from "../lib/pinned/write.ts";
import { realOf } from "../lib/real-path.ts";

const SHELL = "/bin/sh";
const MOST_BYTES = 1_000_000;

/** Runs the user's own command in their shell, on the terminal. Returns how it ended. */
export function runOwn(command: string, env: NodeJS.ProcessEnv): Promise<string> {
  return run(env.SHELL || SHELL, ["-c", command], env);
}

/** Opens a text in the user's editor. Returns the edited text, or why there is none. */
export async function editOutside(text: string, env: NodeJS.ProcessEnv): Promise<{ text: string } | { failed: string }> {
  const editor = env.VISUAL || env.EDITOR || "vi";
  const folder = mkdtempSync(join(realOf(tmpdir()), "io-message-"));
  try {
    withFolder(folder, (held) => createFile(held, "message.md", text, { durable: false }));
    // The variable may contain options, so a shell splits it.
    const ended = await run(SHELL, ["-c", `${editor} "$1"`, "sh", join(folder, "message.md")], env);
    if (ended !== "") return { failed: `${editor}: ${ended}` };
    const read = withFolder(folder, (held) => readPlain(held, "message.md", MOST_BYTES));
    return "bytes" in read ? { text: read.bytes.toString("utf8").replace(/\n$/, "") } : { failed: `the text is ${read.absent}` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns an empty string on success, otherwise how the program ended. */
function run(program: string, args: string[], env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((done) => {
    const child = spawn(program, args, { env, stdio: "inherit" });
    child.once("error", (error) => done(error.message));
    child.once("close", (code, signal) => done(code === 0 ? "" : signal ? `ended by ${signal}` : `exit ${code}`));
  });
}
