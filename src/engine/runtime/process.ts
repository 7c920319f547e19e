import type { ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { CopilotClient, type CopilotClientOptions, RuntimeConnection } from "@github/copilot-sdk";
import { UserError } from "../../lib/errors.ts";
import { waitForExit } from "../../process/processes.ts";
import { stampOf } from "./hashes.ts";
import { kill } from "./leftovers.ts";
import { RUNTIME_LIBRARY } from "./unpack.ts";

/** One runtime process, from its start to its end. */
export interface RuntimeProcess {
  readonly client: CopilotClient;
  readonly pid: number;
  /** The version that the runtime reports; null if it ended before that. */
  readonly version: string | null;
  /** Calls the listener when the process ends, unless the returned function was called first. */
  onDeath(listener: () => void): () => void;
  isDead(): boolean;
  /** The number of its running turns. */
  turns: number;
}

export interface RuntimeProcessDeps {
  /** The runtime's home, which contains all sessions. */
  folder: string;
  /** The executable. */
  path: string;
  env: Record<string, string | undefined>;
  client: Pick<CopilotClientOptions, "requestHandler" | "useLoggedInUser" | "onListModels">;
  /** Called with the process id as soon as it is known. */
  onPid: (pid: number) => void;
}

const PING_MS = 5_000;

/** The SDK starts an unchecked runtime of its own when a session is opened on a client whose runtime has ended; prevent that. */
class OneLifeClient extends CopilotClient {
  #hasStarted = false;

  override start(): Promise<void> {
    if (this.#hasStarted) return Promise.reject(new Error("The connection was closed: this runtime has ended."));
    this.#hasStarted = true;
    return super.start();
  }
}

/** Starts runtime processes, and abandons those still starting when they are no longer needed. */
export function createStarter({ folder, path, env, client: options, onPid }: RuntimeProcessDeps) {
  const starting = new Set<CopilotClient>();
  const stamp = stampOfRuntime(path);
  return {
    async start(): Promise<RuntimeProcess> {
      if (stampOfRuntime(path) !== stamp)
        throw new UserError(
          `${path} is not the file that it was when IO started. If you updated it, restart IO with "io restart"; if not, find out who did.`,
        );
      const connection = RuntimeConnection.forStdio({ path });
      const place = { baseDirectory: folder, workingDirectory: folder };
      const client = new OneLifeClient({ ...options, connection, ...place, env, logLevel: "error" });
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
    /** Ends runtimes that are still starting. */
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

/** Values that change when the executable or one of its libraries is replaced. */
function stampOfRuntime(path: string): string {
  return [path, join(dirname(path), RUNTIME_LIBRARY)].map((file) => (existsSync(file) ? stampOf(file) : "none")).join("; ");
}

/** Asks the runtime to end, and kills it if it does not. Sessions are already on disk. */
export async function endRuntime(life: RuntimeProcess): Promise<void> {
  if (life.isDead()) return;
  const asked = life.client.rpc.runtime.shutdown().catch(() => undefined);
  const died = new Promise<void>((resolve) => life.onDeath(resolve));
  await Promise.race([asked, died, new Promise((late) => setTimeout(late, 1_000).unref())]);
  await life.client.forceStop().catch(() => undefined);
  if (await waitForExit(life.pid, 2_000)) return;
  kill(life.pid);
  await waitForExit(life.pid, 2_000);
}

/** Whether a runtime answers a ping in time. */
export async function isResponsive({ client }: RuntimeProcess): Promise<boolean> {
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

/** Not a promise: that would keep every turn that ever waited for it in memory until the process ends. */
function watchForDeath(child: ChildProcess): Pick<RuntimeProcess, "onDeath" | "isDead"> {
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

function versionOf(client: CopilotClient, onDeath: RuntimeProcess["onDeath"]): Promise<string | null> {
  const told = client.getStatus().then(
    (status) => status.version,
    () => null,
  );
  return Promise.race([told, new Promise<null>((resolve) => onDeath(() => resolve(null)))]);
}

/** The SDK does not report the end of its runtime, so the process is watched directly. */
function childOf(client: CopilotClient): ChildProcess {
  const child = processOf(client);
  if (!child)
    throw new Error("this version of the SDK hides its runtime process: engine/runtime/process.ts has to learn where it is now");
  return child;
}

function processOf(client: CopilotClient): ChildProcess | undefined {
  return (client as unknown as { cliProcess?: ChildProcess | null }).cliProcess ?? undefined;
}
