import { setFlagsFromString } from "node:v8";
import { CONNECT } from "../client/status.ts";
import { ExitCode, messageOf } from "../lib/errors.ts";
import { howToType } from "../lib/invocation.ts";
import { readableLine } from "./logs.ts";
import type { Shell } from "./output.ts";

/** Less than `io stop` waits, so that the daemon ends by itself. */
const CLOSE_MS = 7_000;

/** Runs the daemon in this process until a signal ends it. */
export async function serve(
  shell: Shell,
  { selfEdit = false, background = false, untilIdle = false }: ServeOptions,
): Promise<void> {
  // After the runtime dies, the SDK rejects a write in a way that nobody can catch; the turn is resumed anyway.
  process.on("unhandledRejection", (error) => shell.note(`a failure that nobody waited for: ${messageOf(error)}`));
  const stopping = new AbortController();
  // Handles signals from the start, so that stopping a starting daemon is clean too; a second signal kills the process.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stopping.abort());
  const ended = new Promise<void>((end) => stopping.signal.addEventListener("abort", () => end()));
  ended.then(() => setTimeout(() => giveUp(shell, "it took too long"), CLOSE_MS).unref());

  // A start allocates much at once; without this, Node would keep 10 MB more for young objects as long as the daemon lives.
  setFlagsFromString("--semi-space-growth-factor=1");
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
  /** Whether to log to the file only, because nobody watches. */
  background?: boolean | undefined;
  /** Whether the daemon ends when it has nothing left to do. */
  untilIdle?: boolean | undefined;
}

/** Exits anyway: the next start finishes what is unfinished, as after a crash. */
function giveUp(shell: Shell, why: string): never {
  shell.note(`IO could not put everything away: ${why}. Nothing that was acknowledged is lost.`);
  process.exit(ExitCode.failed);
}
