import { CONNECT } from "../client/status.ts";
import { ExitCode, messageOf } from "../lib/errors.ts";
import { howToType } from "../lib/invocation.ts";
import { readableLine } from "./logs.ts";
import type { Shell } from "./output.ts";

/** Less than `io stop` waits for, so that a daemon ends by itself. */
const CLOSE_MS = 7_000;

/** Runs the daemon in this process until a signal ends it. */
export async function serve(
  shell: Shell,
  { selfEdit = false, background = false, untilIdle = false }: ServeOptions,
): Promise<void> {
  // The SDK lets a write to a runtime that has just died escape as a rejection nobody can catch; the turn is taken up again anyway.
  process.on("unhandledRejection", (error) => shell.note(`a failure that nobody waited for: ${messageOf(error)}`));
  const stopping = new AbortController();
  // Heard from the first moment, so that a stop while IO starts is a clean one too; a second signal ends the process at once.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stopping.abort());
  const ended = new Promise<void>((end) => stopping.signal.addEventListener("abort", () => end()));
  ended.then(() => setTimeout(() => giveUp(shell, "it took too long"), CLOSE_MS).unref());

  const { startDaemon } = await import("../daemon/start.ts");
  const echo = background ? {} : { echo: (line: string) => shell.note(readableLine(line)) };
  const daemon = await startDaemon({ env: shell.env, selfEdit, untilIdle, signal: stopping.signal, ...echo }).catch(
    (error: unknown) => {
      if (error !== stopping.signal.reason) throw error;
      shell.note("IO was stopped before it served.");
      process.exit(ExitCode.done);
    },
  );
  shell.note(`IO serves at ${daemon.url}; its data is in ${daemon.paths.home}.`);
  shell.note(`Model: ${daemon.choice.why}.`);
  if (daemon.choice.kind === "rehearsal") shell.note(CONNECT);
  const how = background ? undefined : howToType({ env: shell.env, cwd: process.cwd() });
  if (how) shell.note(how);
  await Promise.race([ended, daemon.idle]);
  setTimeout(() => giveUp(shell, "it took too long"), CLOSE_MS).unref();
  await daemon.stop().catch((error: unknown) => giveUp(shell, messageOf(error)));
  process.exit();
}

interface ServeOptions {
  selfEdit?: boolean | undefined;
  /** Nobody watches: the log goes to its file alone. */
  background?: boolean | undefined;
  /** It was started for one piece of work, and ends when nothing is left to do. */
  untilIdle?: boolean | undefined;
}

/** Stop stops: what cannot be put away in order is left to the next start, which finishes it as after a crash. */
function giveUp(shell: Shell, why: string): never {
  shell.note(`IO could not put everything away: ${why}. Nothing that was acknowledged is lost.`);
  process.exit(ExitCode.failed);
}
