import { randomBytes } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import { z } from "zod";
import { named } from "../lib/quoted.ts";
import { locate } from "../lib/real-path.ts";
import type { Redactor } from "../lib/redact.ts";
import { asData } from "../lib/untrusted.ts";
import { cleanEnvironment } from "../process/environment.ts";
import { type ExecResult, exec } from "../process/exec.ts";
import { watchLeftovers } from "../process/leftover-processes.ts";
import type { Sandbox } from "../process/sandbox.ts";
import { type Tool, ToolError, tool } from "./tool.ts";

export interface ShellDeps {
  sandbox: Sandbox;
  redactor: Redactor;
  /** What every command may read, however little it sees besides. */
  readable?: readonly string[];
  env?: NodeJS.ProcessEnv;
}

const LIMIT = 8_000;
const Arguments = z.object({
  command: z.string().min(1).max(100_000),
  timeout_secs: z.number().int().min(1).max(3600).default(60).describe("default 60"),
  working_dir: z.string().min(1).optional(),
});

/** Runs one command of the model's, in a process group that ends with the call. */
export function shell({ sandbox, redactor, readable = [], env = process.env }: ShellDeps): Tool {
  const interpreter = existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh";
  return tool({
    name: "shell",
    onHost: true,
    description:
      "Run a command with bash and read its exit code and output (long output is cut in the middle). No terminal and no input; nothing it starts outlives the call.",
    schema: Arguments,
    kind: "effect",
    touches: ({ working_dir }) => (working_dir === undefined ? [] : [{ path: working_dir, how: "read" }]),
    deadlineMs: ({ timeout_secs }) => timeout_secs * 1000 + 10_000,
    async run({ command, timeout_secs, working_dir }, { cwd, within, stand, signal }) {
      const folder = working_dir === undefined ? cwd : locate(working_dir, cwd);
      if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
        throw new ToolError(
          `working_dir: ${named(folder, 300)} is not a folder. Make it first, or leave working_dir out to use ${named(cwd, 300)}.`,
        );
      }
      const mark = `IO_CALL=${randomBytes(12).toString("hex")}`;
      const status = await sandbox.status();
      // With a process list of its own, a sandbox takes everything in it along when it ends.
      const watch = status.kind === "hidden" && status.processes ? undefined : await watchLeftovers(mark);
      const [program, ...args] = await sandbox.wrap([interpreter, "-c", command], folder, {
        ...{ place: within ?? cwd, ...stand },
        readable: [...(stand?.readable ?? []), ...readable],
      });
      const result = await exec(program, args, {
        cwd: folder,
        env: { ...cleanEnvironment(env, redactor), IO_CALL: mark.slice("IO_CALL=".length) },
        signal,
        deadlineMs: timeout_secs * 1000,
        maxOutput: LIMIT,
      });
      await watch?.end();
      return tell(result, timeout_secs);
    },
  });
}

function tell(result: ExecResult, seconds: number): string {
  const said = stripVTControlCharacters(result.output).trimEnd();
  const output = said === "" ? "It printed nothing." : asData(said);
  if (result.ending === "not-started") throw new ToolError(`The command could not be started:\n${output}`);
  if (result.ending === "aborted") throw new ToolError(`The command was stopped, with everything it had started.\n${output}`);
  if (result.ending === "deadline") {
    throw new ToolError(
      `The command did not end within ${seconds} s and was stopped, with everything it had started. Give it more timeout_secs (at most 3600) if it needs them. Until then it printed:\n${output}`,
    );
  }
  const code = result.code === null ? "none (ended by a signal)" : result.code;
  return `exit code: ${code}\n${output}`;
}
