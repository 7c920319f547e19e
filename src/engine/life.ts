import type { ChildProcess } from "node:child_process";
import { CopilotClient, type CopilotClientOptions, RuntimeConnection } from "@github/copilot-sdk";
import { waitForExit } from "../process/processes.ts";

/** One runtime process, from its start to its end. */
export interface Life {
  readonly client: CopilotClient;
  readonly pid: number;
  /** What the runtime calls itself; null when it ended before it said so. */
  readonly version: string | null;
  /** Calls the listener when the process has ended, unless the returned function was called before. */
  onDeath(listener: () => void): () => void;
  isDead(): boolean;
  /** How many turns it is busy with. */
  turns: number;
}

export interface LifeDeps {
  /** The runtime's home, which holds every session. */
  folder: string;
  /** The executable. */
  path: string;
  env: Record<string, string | undefined>;
  client: Pick<CopilotClientOptions, "requestHandler" | "useLoggedInUser" | "onListModels">;
  /** Called with the process's number as soon as there is one. */
  onPid: (pid: number) => void;
}

const PING_MS = 5_000;

/** Starts runtime processes, and gives up those that have not come up when they are no longer wanted. */
export function createStarter({ folder, path, env, client: options, onPid }: LifeDeps) {
  const starting = new Set<CopilotClient>();
  return {
    async start(): Promise<Life> {
      const connection = RuntimeConnection.forStdio({ path });
      const place = { baseDirectory: folder, workingDirectory: folder };
      const client = new CopilotClient({ ...options, connection, ...place, env, logLevel: "error" });
      starting.add(client);
      try {
        await client.start();
        const child = childOf(client);
        const { onDeath, isDead } = watchForDeath(child);
        const pid = child.pid ?? 0;
        onPid(pid);
        return { client, pid, version: await versionOf(client, onDeath), onDeath, isDead, turns: 0 };
      } finally {
        starting.delete(client);
      }
    },
    /** Ends the runtimes that have not come up yet. */
    async abandon(): Promise<void> {
      const ending = [...starting].map(async (client) => {
        const pid = processOf(client)?.pid;
        await client.forceStop().catch(() => undefined);
        if (pid !== undefined) await waitForExit(pid, 2_000);
      });
      await Promise.all(ending);
    },
  };
}

/** Asks the runtime to end, and ends it if it does not. Sessions are on disk already. */
export async function endLife(life: Life): Promise<void> {
  if (life.isDead()) return;
  const asked = life.client.rpc.runtime.shutdown().catch(() => undefined);
  const died = new Promise<void>((resolve) => life.onDeath(resolve));
  await Promise.race([asked, died, new Promise((late) => setTimeout(late, 1_000).unref())]);
  await life.client.forceStop().catch(() => undefined);
  if (await waitForExit(life.pid, 2_000)) return;
  kill(life.pid);
  await waitForExit(life.pid, 2_000);
}

/** Whether a runtime still answers a simple question in reasonable time. */
export async function isResponsive({ client }: Life): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), PING_MS);
  });
  const pong = client.ping("health").then(
    () => true,
    () => false,
  );
  const answered = await Promise.race([pong, late]);
  clearTimeout(timer);
  return answered;
}

export function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has already ended.
  }
}

/** Not a promise: one would hold on to every turn that ever waited for it until the process ends. */
function watchForDeath(child: ChildProcess): Pick<Life, "onDeath" | "isDead"> {
  const listeners = new Set<() => void>();
  let dead = false;
  child.once("exit", () => {
    dead = true;
    for (const listener of listeners) listener();
    listeners.clear();
  });
  return {
    onDeath(listener) {
      if (dead) listener();
      else listeners.add(listener);
      return () => listeners.delete(listener);
    },
    isDead: () => dead,
  };
}

function versionOf(client: CopilotClient, onDeath: Life["onDeath"]): Promise<string | null> {
  const told = client.getStatus().then(
    (status) => status.version,
    () => null,
  );
  return Promise.race([told, new Promise<null>((resolve) => onDeath(() => resolve(null)))]);
}

/** The SDK tells nobody when its runtime ends, so its process is watched directly. */
function childOf(client: CopilotClient): ChildProcess {
  const child = processOf(client);
  if (!child) throw new Error("this version of the SDK hides its runtime process: engine/life.ts has to learn where it is now");
  return child;
}

function processOf(client: CopilotClient): ChildProcess | undefined {
  return (client as unknown as { cliProcess?: ChildProcess | null }).cliProcess ?? undefined;
}
