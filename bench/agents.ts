import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { approveAll, CopilotClient, RuntimeConnection } from "@github/copilot-sdk";
import { z } from "zod";
import { readEvents } from "../src/client/sse.ts";
import { type ModelServer, startModelServer } from "../src/engine/rehearsal/server.ts";
import { textOf } from "../src/engine/rehearsal/wire.ts";
import { pidFileOf } from "../src/engine/runtime/leftovers.ts";
import { findRuntime } from "../src/engine/runtime/path.ts";
import { readDaemonFile } from "../src/home/daemon-file.ts";
import { packageRoot } from "../src/lib/package-root.ts";
import { residentMb, waitForExit } from "../src/process/processes.ts";

/** How many agents work at once, and how many times slower than bare sessions they may be. */
const LOADS = [
  { count: 1, allowed: undefined },
  { count: 10, allowed: 1.2 },
  { count: 50, allowed: 1.3 },
] as const;

const Offered = z.object({
  function: z.object({ name: z.string(), description: z.string(), parameters: z.record(z.string(), z.unknown()) }),
});

/** The system message and tools of an agent's request, which the bare sessions get too. */
interface Like {
  system: string;
  tools: z.infer<typeof Offered>[];
}

/** Compares tasks of agents with bare SDK sessions in the same run, both with a model of fixed latency. */
export async function run(args: string[] = []): Promise<void> {
  if (!existsSync(join(packageRoot, "dist", "cli", "io.js"))) throw new Error("there is nothing to measure: npm run build first");
  const latencyMs = numberOf(args, "--latency", 2_000);
  const rounds = numberOf(args, "--rounds", 3);
  const like: Like = { system: "", tools: [] };
  const model = await startModelServer((request) => {
    const prompt = textOf(request.messages.findLast(({ role }) => role === "user"));
    if (prompt.includes("Task t_")) {
      like.system = textOf(request.messages.find(({ role }) => role === "system"));
      like.tools = z.array(Offered).parse(request.tools ?? []);
    }
    return prompt.includes("[via background]") ? { say: "noted" } : { say: "ready", delayMs: latencyMs };
  });
  const folder = mkdtempSync(join(tmpdir(), "io-bench-agents-"));
  console.log(
    `a model that takes ${latencyMs} ms, one call a task; median of ${rounds} rounds; new sessions in every round; bare sessions have the same tools and system message`,
  );
  let missed = false;
  try {
    for (const { count, allowed } of LOADS) {
      const bare = await startBare(join(folder, `bare-${count}`), model);
      const daemon = await startDaemon(join(folder, `home-${count}`), model);
      const bareMs: number[] = [];
      const emptyMs: number[] = [];
      const taskMs: number[] = [];
      const before = await daemon.memory();
      const peak = daemon.watchMemory();
      await daemon.round(1, join(folder, `project-${count}-first`));
      await bare.round(1, like);
      for (let round = 0; round < rounds; round += 1) {
        bareMs.push(await bare.round(count, like));
        emptyMs.push(await bare.round(count, { system: "You do what you are told.", tools: [] }));
        taskMs.push(await daemon.round(count, join(folder, `project-${count}-${round}`)));
        await daemon.quiet();
      }
      const most = await peak.stop();
      await sleep(3_000);
      const after = await daemon.memory();
      await daemon.stop();
      await bare.stop();
      const [bareMedian, taskMedian] = [median(bareMs), median(taskMs)];
      const ratio = taskMedian / bareMedian;
      missed ||= allowed !== undefined && ratio > allowed;
      const bound = allowed === undefined ? "" : ` (at most ${allowed}: ${ratio <= allowed ? "held" : "MISSED"})`;
      console.log(
        `${count} at once: tasks ${ms(taskMedian)} [${taskMs.map(ms).join(", ")}], bare SDK ${ms(bareMedian)} [${bareMs.map(ms).join(", ")}], ${ratio.toFixed(2)} times bare${bound}, ${(taskMedian / latencyMs).toFixed(2)} times the latency`,
      );
      console.log(
        `  bare SDK without tools and with one line of system message: ${ms(median(emptyMs))} [${emptyMs.map(ms).join(", ")}]`,
      );
      console.log(`  memory, daemon + runtime, MB: before ${tell(before)}, peak ${tell(most)}, after ${tell(after)}`);
    }
  } finally {
    await model.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  }
  if (missed) process.exitCode = 1;
}

async function startBare(folder: string, model: ModelServer) {
  mkdirSync(folder, { recursive: true });
  const path = await findRuntime(process.env);
  const client = new CopilotClient({
    connection: RuntimeConnection.forStdio({ path }),
    baseDirectory: folder,
    workingDirectory: folder,
    env: { PATH: process.env.PATH, HOME: folder, COPILOT_HOME: folder, COPILOT_OFFLINE: "true" },
    useLoggedInUser: false,
    logLevel: "error",
  });
  await client.start();
  const one = async ({ system, tools }: Like) => {
    const session = await client.createSession({
      model: "scripted",
      provider: { type: "openai", wireApi: "completions", baseUrl: model.url, apiKey: "none" },
      streaming: false,
      systemMessage: { mode: "replace", content: system },
      tools: tools.map(({ function: { name, description, parameters } }) => ({
        name,
        description,
        parameters,
        skipPermission: true,
        defer: "never",
        handler: async () => "not here",
      })),
      availableTools: ["custom:*"],
      enableConfigDiscovery: false,
      skipCustomInstructions: true,
      toolSearch: { enabled: false },
      onPermissionRequest: approveAll,
    });
    await session.sendAndWait({ prompt: "do it" }, 120_000);
  };
  return {
    async round(count: number, like: Like): Promise<number> {
      const started = performance.now();
      await Promise.all(Array.from({ length: count }, () => one(like)));
      return performance.now() - started;
    },
    stop: () => client.stop(),
  };
}

interface Memory {
  daemon: number;
  runtime: number;
}

async function startDaemon(home: string, model: ModelServer) {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const child: ChildProcess = spawn(process.execPath, [join(packageRoot, "bin", "io.js"), "--daemon"], {
    env: {
      PATH: process.env.PATH,
      HOME: home,
      IO_HOME: home,
      IO_PORT: "0",
      COPILOT_PROVIDER_BASE_URL: model.url,
      COPILOT_MODEL: "scripted",
    },
    stdio: "ignore",
  });
  let file = readDaemonFile(join(home, "daemon.json"));
  for (let tries = 0; file?.pid !== child.pid && tries < 600; tries += 1) {
    await sleep(50);
    file = readDaemonFile(join(home, "daemon.json"));
  }
  if (!file) throw new Error("the daemon did not start");
  const { pid, host, port } = file;
  const url = `http://${host}:${port}`;
  const authorization = `Bearer ${readFileSync(join(home, "token"), "utf8").trim()}`;
  const post = async (path: string, body: unknown): Promise<{ id?: string; slug?: string; characterName?: string }> => {
    const headers = { authorization, "content-type": "application/json" };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    if (response.status !== 201) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as { id?: string };
  };
  const memory = async (): Promise<Memory> => ({
    daemon: await residentMb(pid),
    runtime: await residentMb(Number(readFileSync(pidFileOf(join(home, "sessions"), pid), "utf8"))),
  });

  return {
    memory,
    watchMemory() {
      const most: Memory = { daemon: 0, runtime: 0 };
      let watching = true;
      const watch = (async () => {
        while (watching) {
          const now = await memory();
          most.daemon = Math.max(most.daemon, now.daemon);
          most.runtime = Math.max(most.runtime, now.runtime);
          await sleep(100);
        }
      })();
      return {
        async stop(): Promise<Memory> {
          watching = false;
          await watch;
          return most;
        },
      };
    },
    /** Measures from the first request to the last task's end, for agents that have never worked before. */
    async round(count: number, project: string): Promise<number> {
      mkdirSync(project, { recursive: true });
      writeFileSync(join(project, "README.md"), "# A project\n");
      execFileSync("git", ["init", "-q"], { cwd: project });
      const { slug } = await post("/api/squads", { name: project.split("/").at(-1), projectPath: project });
      const agents: string[] = [];
      for (let index = 0; index < count; index += 1) {
        const { characterName } = await post(`/api/squads/${slug}/agents`, {
          roleTitle: `Engineer ${index + 1}`,
          charter: "Everything.",
        });
        agents.push(characterName!);
      }
      const leave = new AbortController();
      const events = await fetch(`${url}/api/events`, { headers: { authorization }, signal: leave.signal });
      let left = count;
      const allEnded = (async () => {
        for await (const { event, data } of readEvents(events.body!)) {
          if (event !== "task.finished") continue;
          if ((JSON.parse(data) as { status: string }).status !== "done") throw new Error(`a task failed: ${data}`);
          left -= 1;
          if (left === 0) return performance.now();
        }
        throw new Error("the events ended early");
      })();
      const started = performance.now();
      await Promise.all(agents.map((agent) => post(`/api/squads/${slug}/tasks`, { task: "do it", agent })));
      const took = (await allEnded) - started;
      leave.abort();
      return took;
    },
    /** Waits until the results are reported too, which is not part of the comparison. */
    async quiet(): Promise<void> {
      for (;;) {
        const response = await fetch(`${url}/api/status`, { headers: { authorization } });
        const { queue } = (await response.json()) as { queue: { waiting: number; running: number } };
        if (queue.waiting + queue.running === 0) return;
        await sleep(100);
      }
    },
    async stop(): Promise<void> {
      child.kill("SIGTERM");
      await waitForExit(pid, 15_000);
    },
  };
}

function numberOf(args: readonly string[], name: string, fallback: number): number {
  const at = args.indexOf(name);
  const value = at < 0 ? fallback : Number(args[at + 1]);
  if (!Number.isInteger(value) || value < 1) throw new Error(`${name}: a whole number is needed`);
  return value;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

const ms = (value: number) => `${Math.round(value)} ms`;
const tell = ({ daemon, runtime }: Memory) => `${daemon} + ${runtime} = ${daemon + runtime}`;
