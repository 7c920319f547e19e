import { randomBytes } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { stripVTControlCharacters } from "node:util";
import { z } from "zod";
import { named } from "../lib/quoted.ts";
import { locate } from "../lib/real-path.ts";
import type { Redactor } from "../lib/redact.ts";
import { asData } from "../lib/untrusted.ts";
import type { BackgroundCommands } from "../process/background-commands.ts";
import { cleanEnvironment, UNATTENDED, withoutEmbeddedRepositories } from "../process/environment.ts";
import { type ExecResult, exec } from "../process/exec.ts";
import { watchLeftovers } from "../process/leftover-processes.ts";
import type { Sandbox, SandboxProfile } from "../process/sandbox.ts";
import { LONGEST_CALL_MS } from "../protocol/turns.ts";
import { createShellOutput, createShellStop, type Holders, TOO_MANY, tellStarted } from "./background-shell.ts";
import { whatChanged } from "./call-targets.ts";
import { sandboxHint } from "./sandbox-hints.ts";
import { runInTerminal, terminalFor } from "./terminal-shell.ts";
import { Refusal, type Tool, type ToolContext, ToolError, tool } from "./tool.ts";

export interface ShellDeps {
  sandbox: Sandbox;
  redactor: Redactor;
  /** Paths that every command may read, however little else it sees. */
  readable?: readonly string[];
  env?: NodeJS.ProcessEnv;
  /** Commands that continue after their call, and the holders they end with. If missing, no command may. */
  background?: Holders & {
    commands: BackgroundCommands;
    /** An environment variable that identifies the commands left behind by a daemon that was killed. */
    mark: string;
    /** Resolves when none of those commands is left. */
    ready: Promise<void>;
  };
  /** The longest time for a foreground command, whatever was asked for. */
  longestMs?: number;
}

const LIMIT = 8_000;
const Arguments = z.object({
  command: z.string().min(1).max(100_000),
  timeout_secs: z.number().int().min(1).max(3600).default(60).describe("default 60"),
  working_dir: z.string().min(1).max(4_096).optional(),
  background: z.boolean().optional().describe("let it run on, as for a server; gives an id for shell_output and shell_stop"),
  outside: z.boolean().optional().describe("ask a person to run it outside the sandbox, after the sandbox refused it"),
});
type Arguments = z.output<typeof Arguments>;

/** How long to watch a background command before answering its call. */
const FIRST_LOOK_MS = 1_000;

/** Runs the model's commands. A foreground command ends with its call, a background command with its holder. */
export function shell(deps: ShellDeps): Tool {
  // Leaves time before the call's own deadline to report what the command printed.
  const { sandbox, background, longestMs = LONGEST_CALL_MS - 10_000 } = deps;
  return tool({
    name: "shell",
    onHost: true,
    description:
      "Run a command with bash and read its exit code and output (long output is cut in the middle). No terminal and no input; without background nothing it starts outlives the call.",
    schema: Arguments,
    kind: "effect",
    touches: ({ working_dir }) => (working_dir === undefined ? [] : [{ path: working_dir, how: "read" }]),
    writes: ({ working_dir = "." }) => ({ paths: [working_dir], below: true }),
    deadlineMs: ({ timeout_secs }) => timeout_secs * 1000 + 10_000,
    ...(background && { turnEnded: (owner: string) => endTurn(background, owner) }),
    async run(args, context) {
      const prepared = await prepare(deps, args, context);
      if (args.background) return startInBackground(deps, args, context, prepared);
      const { program, folder, env, added, watch, own, terminal } = prepared;
      const [file, ...rest] = program;
      const limits = { deadlineMs: Math.min(args.timeout_secs * 1000, longestMs), maxOutput: LIMIT };
      const started = terminal
        ? runInTerminal(terminal, { program: file, args: rest, cwd: folder, env: added }, context, limits)
        : exec(file, rest, {
            ...{ cwd: folder, env, signal: context.signal, ...limits },
            ...(context.onOutput && { onOutput: context.onOutput }),
          });
      const result = await started.finally(() => watch?.end());
      const hints = sandbox.height(own) === "project" ? sandboxHint(args.command, result, own.place ?? context.cwd) : [];
      return [tell(result, args.timeout_secs, longestMs), ...hints].join("\n");
    },
  });
}

/** The tools that read and stop the commands that `shell` left running. */
export function backgroundTools({ background }: Pick<ShellDeps, "background">): Tool[] {
  return background ? [createShellOutput(background), createShellStop(background)] : [];
}

/** Prepares a command to be started, after every check that could refuse it. */
async function prepare(
  { sandbox, redactor, readable = [], env = process.env }: ShellDeps,
  { command, working_dir, outside, background }: Arguments,
  context: ToolContext,
) {
  const { cwd, within, project, mode, profile, approved = [], byRule } = context;
  const folder = working_dir === undefined ? cwd : locate(working_dir, cwd);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw new ToolError(
      `working_dir: ${named(folder, 300)} is not a folder. Make it first, or leave working_dir out to use ${named(cwd, 300)}.`,
    );
  }
  const mark = `IO_CALL=${randomBytes(12).toString("hex")}`;
  const status = await sandbox.status();
  const own: SandboxProfile = { place: within ?? project ?? cwd, mode, ...profile };
  const height = sandbox.height(own);
  if (outside && height !== "secrets") throw new Refusal(NOBODY_ASKED);
  if (height === "project" && status.kind === "open") throw new Refusal(NO_SANDBOX);
  // When a sandbox with its own process list ends, everything in it ends too.
  const terminal = height === "secrets" ? terminalFor({ background }, context) : undefined;
  const isAlone = !terminal && status.kind === "hidden" && status.processes;
  const watch = isAlone ? undefined : await watchLeftovers(mark);
  const interpreter = existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh";
  const argv: [string, ...string[]] = [interpreter, "-c", command];
  const seen = { ...own, readable: [...(profile?.readable ?? []), ...readable] };
  const program = terminal ? argv : await sandbox.wrap(argv, folder, seen);
  // During the awaits above, another folder may have taken the place of the approved one.
  const changed = whatChanged("shell", approved);
  if (changed !== undefined) throw new Refusal(changed);
  // Nobody is watching: without CI, test runners wait for changes and installers for answers.
  const call = { IO_CALL: mark.slice("IO_CALL=".length) };
  const theirs = { CI: "true", ...cleanEnvironment(env, redactor), ...call };
  const isUnseenGit = byRule && /\bgit\b/.test(command);
  const guarded = <T extends NodeJS.ProcessEnv>(variables: T): T =>
    isUnseenGit ? withoutEmbeddedRepositories(variables) : variables;
  // An editor's terminal has its own environment.
  const added: Record<string, string> = guarded({ CI: "true", ...UNATTENDED, ...call });
  return { program, folder, own, watch, terminal, added, env: guarded(theirs) };
}

/** Starts a command and answers with its id, or with its result if it ends at once. */
async function startInBackground(
  { sandbox, background }: ShellDeps,
  { command }: Arguments,
  { owner, cwd, signal, lasts }: ToolContext,
  { program, folder, env, watch, own }: Awaited<ReturnType<typeof prepare>>,
): Promise<string> {
  if (!background) throw new Refusal("shell was not run: no command can stay in the background here. Run it without background.");
  const { commands, holderOf, mark, ready } = background;
  await ready;
  const [name = "", value] = mark.split("=");
  const started = commands.start({
    ...{ holder: holderOf(owner), owner, command, cwd: folder, argv: program },
    env: { ...env, [name]: value },
    ...(watch && { sweep: watch.end }),
  });
  if (!started) throw new Refusal(TOO_MANY);
  lasts?.(started.ended);
  const begun = performance.now();
  while (started.result === undefined && !signal.aborted && performance.now() - begun < FIRST_LOOK_MS)
    await commands.changed(started.id, FIRST_LOOK_MS - (performance.now() - begun), signal);
  if (signal.aborted) {
    await commands.stop(started.id);
    throw new ToolError("The command was stopped, with everything it had started.");
  }
  const { result } = started;
  if (result) {
    const hints = sandbox.height(own) === "project" ? sandboxHint(command, result, own.place ?? cwd) : [];
    return [tell(result, 0, 0), ...hints].join("\n");
  }
  return tellStarted(started, commands.read(started.id, 1));
}

/** Ends the commands that a task or step left running; a conversation keeps its commands. */
async function endTurn({ commands, holderOf }: NonNullable<ShellDeps["background"]>, owner: string): Promise<void> {
  if (holderOf(owner) === owner) await commands.forget(owner);
}

const NOBODY_ASKED =
  "shell was not run: no person is asked here, so it cannot leave the sandbox. Run it without outside, or do without it.";
const NO_SANDBOX =
  "shell was not run: commands are to run in a sandbox, there is none on this machine, and nobody was asked. Tell the user: io doctor says what is missing.";

function tell(result: Pick<ExecResult, "code" | "ending" | "output">, wanted: number, longestMs: number): string {
  const said = stripVTControlCharacters(result.output).trimEnd();
  const output = said === "" ? "It printed nothing." : asData(said);
  if (result.ending === "not-started") throw new ToolError(`The command could not be started:\n${output}`);
  if (result.ending === "aborted") throw new ToolError(`The command was stopped, with everything it had started.\n${output}`);
  if (result.ending === "deadline") {
    const longest = Math.floor(longestMs / 1000);
    const remedy =
      wanted < longest
        ? `Give it more timeout_secs (at most ${longest}) if it needs them.`
        : "No call takes longer: let it run in the background if it needs to.";
    throw new ToolError(
      `The command did not end within ${Math.min(wanted, longest)} s and was stopped, with everything it had started. ${remedy} Until then it printed:\n${output}`,
    );
  }
  const code = result.code === null ? "none (ended by a signal)" : result.code;
  return `exit code: ${code}\n${output}`;
}
