import { setTimeout as sleep } from "node:timers/promises";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { textOf } from "../src/engine/rehearsal/wire.ts";
import type { Task } from "../src/protocol/squads.ts";
import { startCluster, type TestWorker } from "../test/support/cluster.ts";
import { providerEnvironment, type TestDaemon } from "../test/support/daemon.ts";
import type { AtTheEnd } from "../test/support/home.ts";
import { project, squadWith } from "../test/support/squads.ts";

const AGENTS = 50;
const SQUADS = 5;
const LATENCY_MS = 2_000;

/** Measures fifty agents with one model request each: by a daemon alone, and by one with two workers on the same cores. */
export async function fifty(atTheEnd: AtTheEnd): Promise<void> {
  const model = await startModelServer((request) => {
    const prompt = textOf(request.messages.findLast(({ role }) => role === "user"));
    return /^Task t_/.test(prompt) ? { say: "ready", delayMs: LATENCY_MS } : { say: "noted" };
  });
  atTheEnd(() => model.close());
  const times: Record<string, number> = {};
  for (const workers of [0, 2]) {
    const cluster = await startCluster(atTheEnd, {
      env: providerEnvironment(model.url),
      config: { dispatch: workers === 0 ? "local" : "workers" },
    });
    const agents = await hire(cluster.daemon, atTheEnd);
    const hosts: TestWorker[] = [];
    for (let n = 1; n <= workers; n += 1) hosts.push(await cluster.join(`w${n}`, ["--capacity", String(AGENTS / 2)], atTheEnd));
    times[workers] = await round(cluster.daemon, agents);
    const by = workers === 0 ? "one daemon" : `one daemon with ${workers} workers`;
    console.log(
      `${AGENTS} agents at ${LATENCY_MS} ms, ${by}: ${Math.round(times[workers]!)} ms, ${(times[workers]! / LATENCY_MS).toFixed(2)} times the latency`,
    );
    for (const { child, ended } of hosts) {
      child.kill("SIGTERM");
      await ended;
    }
    await cluster.daemon.kill("SIGTERM");
  }
  console.log(`with two workers on the same cores: ${(times[2]! / times[0]!).toFixed(2)} times the daemon alone`);
}

interface Hired {
  slug: string;
  agent: string;
}

async function hire(daemon: TestDaemon, atTheEnd: AtTheEnd): Promise<Hired[]> {
  const all: Hired[] = [];
  for (let n = 0; n < SQUADS; n += 1) {
    const slug = `squad-${n}`;
    const roles = Array.from({ length: AGENTS / SQUADS }, (_, at) => `Engineer ${at}`);
    const agents = await squadWith(daemon, project({ "README.md": `# ${n}\n` }, atTheEnd), slug, roles);
    await daemon.json("PATCH", `/api/squads/${slug}`, { isolation: "worktree" });
    all.push(...agents.map((agent) => ({ slug, agent })));
  }
  return all;
}

async function round(daemon: TestDaemon, all: readonly Hired[]): Promise<number> {
  const from = performance.now();
  const ids = await Promise.all(
    all.map(({ slug, agent }) => daemon.json<Task>("POST", `/api/squads/${slug}/tasks`, { task: "Say ready", agent })),
  );
  for (const { id } of ids) {
    for (;;) {
      const task = await daemon.json<Task>("GET", `/api/tasks/${id}`);
      if (task.status === "failed") throw new Error(`a task failed: ${JSON.stringify(task.error)}`);
      if (task.finishedAt !== null) break;
      await sleep(20);
    }
  }
  return performance.now() - from;
}
