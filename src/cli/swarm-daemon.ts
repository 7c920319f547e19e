import type { Client } from "../client/client.ts";
import { ExitCode, UserError } from "../lib/errors.ts";
import type { Approval, ApprovalDecision } from "../protocol/approvals.ts";
import type { Event } from "../protocol/events.ts";
import type { Words } from "../protocol/runs.ts";
import { VARIABLE_NAMES } from "../swarm/pipeline/settings.ts";
import { ensureDaemon } from "./daemon.ts";
import type { Shell } from "./output.ts";

/** How often to retry when a daemon ends just as it is found. */
const MOST_TRIES = 5;

/** Follows the running daemon, or starts one that ends when it is idle. */
export async function joinDaemon(shell: Shell, signal: AbortSignal, deps: NewsDeps) {
  for (let tries = 1; ; tries += 1) {
    const client = await reachDaemon(shell, signal);
    const news = openNews(client, deps);
    try {
      await news.opened;
      return { client, news };
    } catch (error) {
      const isGone = error instanceof UserError && error.exitCode === ExitCode.unreachable;
      if (!isGone || tries === MOST_TRIES || signal.aborted) throw error;
    }
  }
}

async function reachDaemon(shell: Shell, signal: AbortSignal): Promise<Client> {
  await ensureDaemon(shell, { untilIdle: true, signal, env: withoutSettings(shell.env) });
  return shell.client();
}

/** This run's settings travel with its request; a new daemon must not apply them to other runs. */
function withoutSettings(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const own: readonly string[] = [...VARIABLE_NAMES, "ISSUE_BODY", "GITHUB_STEP_SUMMARY"];
  return Object.fromEntries(Object.entries(env).filter(([name]) => !own.includes(name)));
}

/** The environment variables that configure a run. */
export function variablesIn(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(VARIABLE_NAMES.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

export interface NewsDeps {
  hear: (event: Event) => void;
  onWords?: ((words: Words) => void) | undefined;
  /** Called when a lost daemon is back. */
  onBack?: () => void;
}

/** Follows events from now on. While it is open, a daemon that would end when idle stays. */
function openNews(client: Client, { hear, onWords, onBack }: NewsDeps) {
  const leaving = new AbortController();
  const { signal } = leaving;
  let isOpen = () => {};
  const opened = new Promise<void>((open) => {
    isOpen = open;
  });
  const follow = async () => {
    const options = { signal, onOpen: isOpen, ...(onWords && { onWords }), ...(onBack && { onBack }) };
    for await (const event of client.events(options)) hear(event);
  };
  const ended = follow();
  ended.catch(() => undefined);
  return {
    /** Resolves once no further event can be missed. */
    opened: Promise.race([opened, ended]),
    /** Rejects when the daemon is lost for good. */
    ended,
    leave: () => leaving.abort(),
  };
}

export const approvalsOf = (client: Client) => ({
  waiting: async (): Promise<Approval[]> =>
    (await client.request<{ items: Approval[] }>("GET", "/api/approvals?state=waiting&limit=200")).items,
  decide: (id: string, decision: ApprovalDecision) =>
    client.request<Approval>("POST", `/api/approvals/${encodeURIComponent(id)}`, decision),
});

/** Aborts at the first Ctrl-C; a second one kills the command as usual. */
export function interruption(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stop.abort());
  return stop.signal;
}
