import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SessionSpec } from "../../src/engine/port.ts";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import { pidFileOf } from "../../src/engine/runtime/leftovers.ts";
import { Config } from "../../src/home/config.ts";
import { isAlive } from "../../src/lib/alive.ts";
import { startEngine, turn } from "../support/engine.ts";
import { temporaryFolder } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { slowRuntime } from "../support/runtime.ts";
import { until } from "../support/until.ts";

const spec = (id: string, folder: string, systemMessage = () => "You are a test."): SessionSpec => ({
  id,
  systemMessage,
  tools: [],
  workingDirectory: folder,
});
const openFiles = (pid: number | "self") => readdirSync(`/proc/${pid}/fd`).length;
const children = (pid: number) => readdirSync("/proc").filter((entry) => /^\d+$/.test(entry) && parentOf(entry) === pid).length;

function parentOf(pid: string): number {
  try {
    return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  } catch {
    // The process ended while we looked.
    return -1;
  }
}

test("a hundred sessions come and go and leave the processes and open files where they were", { timeout: 120_000 }, async () => {
  const folder = temporaryFolder();
  const model = await scriptedModel(() => ({ say: "ok" }));
  const engine = await startEngine(folder, model.url, { maxLiveSessions: 2 });
  const runtime = Number(readFileSync(pidFileOf(folder, process.pid), "utf8"));
  const cycle = async (name: string) => {
    expect((await engine.session(spec(name, folder)).run(turn("hello"))).outcome).toBe("done");
    await engine.deleteSession(name);
  };
  for (let index = 0; index < 5; index += 1) await cycle(`warm-${index}`);
  const before = {
    children: children(process.pid),
    runtimeChildren: children(runtime),
    ours: openFiles("self"),
    theirs: openFiles(runtime),
  };
  for (let index = 0; index < 100; index += 1) await cycle(`s-${index}`);
  await until("the counts to come back", () => {
    const now = {
      children: children(process.pid),
      runtimeChildren: children(runtime),
      ours: openFiles("self"),
      theirs: openFiles(runtime),
    };
    return (
      now.children <= before.children &&
      now.runtimeChildren <= before.runtimeChildren &&
      now.ours <= before.ours + 2 &&
      now.theirs <= before.theirs + 2
    );
  });
  expect(readdirSync(join(folder, "session-state")).filter((name) => !name.startsWith("."))).toEqual([]);
  expect(Number(readFileSync(pidFileOf(folder, process.pid), "utf8"))).toBe(runtime);
});

test("a session that is deleted while it is being prepared leaves nothing behind", async () => {
  const folder = temporaryFolder();
  const model = await scriptedModel(() => ({ say: "ok" }));
  const engine = await startEngine(folder, model.url);
  let begun = false;
  let goOn: (message: string) => void = () => undefined;
  const message = new Promise<string>((resolve) => {
    goOn = resolve;
  });
  const preparing = engine
    .session({
      ...spec("s", folder),
      systemMessage: () => {
        begun = true;
        return message;
      },
    })
    .prepare();
  await until("the preparation to begin", () => begun);
  const deleting = engine.deleteSession("s");
  goOn("You are a test.");
  await Promise.all([preparing, deleting]);
  expect(engine.status().liveSessions).toBe(0);
  const states = join(folder, "session-state");
  expect(existsSync(states) ? readdirSync(states).filter((name) => !name.startsWith(".")) : []).toEqual([]);
});

test("more conversations than the cap are all remembered, though few are held in memory", async () => {
  const folder = temporaryFolder();
  const model = await scriptedModel((request) => ({
    say: String(request.messages.filter(({ role }) => role === "user").length),
  }));
  const engine = await startEngine(folder, model.url, { maxLiveSessions: 2 });
  const names = ["a", "b", "c", "d", "e"];
  for (const name of names) {
    await engine.session(spec(name, folder)).run(turn("one"));
    expect(engine.status().liveSessions).toBeLessThanOrEqual(2);
  }
  for (const name of names) expect((await engine.session(spec(name, folder)).run(turn("two"))).text).toBe("2");
});

test("a changed system message reaches the model in the same conversation", async () => {
  const folder = temporaryFolder();
  const model = await scriptedModel(() => ({ say: "ok" }));
  const engine = await startEngine(folder, model.url);
  let message = "You know nothing.";
  const session = engine.session(spec("s", folder, () => message));
  await session.run(turn("first"));
  message = "You know one thing.";
  await session.run(turn("second"));
  const last = model.requests.at(-1)!;
  expect(last.messages.filter(({ role }) => role === "system").map(textOf)).toEqual(["You know one thing."]);
  expect(last.messages.filter(({ role }) => role === "user")).toHaveLength(2);
});

/** The default config, except that a function gives the runtime's memory limit each time it is checked. */
const limitedTo = (megabytes: () => number): Config =>
  Object.defineProperty(Config.parse({}), "runtimeMaxMb", { get: megabytes });

test("a runtime that grows past its limit is renewed, and conversations go on", async () => {
  const folder = temporaryFolder();
  const model = await scriptedModel((request) => ({
    say: String(request.messages.filter(({ role }) => role === "user").length),
  }));
  const runtime = () => Number(readFileSync(pidFileOf(folder, process.pid), "utf8"));
  let tooLarge = 0;
  let looks = 0;
  const config = limitedTo(() => {
    looks += 1;
    return runtime() === tooLarge ? 1 : Number.POSITIVE_INFINITY;
  });
  const engine = await startEngine(folder, model.url, {}, { config: () => config, healthEveryMs: 100 });
  const session = engine.session(spec("s", folder));
  const first = runtime();
  await session.run(turn("one"));
  await until("two looks at its memory", () => looks >= 2);
  expect(runtime()).toBe(first);

  tooLarge = first;
  await until("a new runtime", () => runtime() !== first);
  await until("the end of the old one", () => !isAlive(first));
  expect((await session.run(turn("two"))).text).toBe("2");
});

test("a runtime that is slow to start is still renewed only once", async () => {
  const folder = temporaryFolder();
  const notes = join(folder, "starts");
  const model = await scriptedModel(() => ({ say: "ok" }));
  const runtime = () => Number(readFileSync(pidFileOf(folder, process.pid), "utf8"));
  let tooLarge = 0;
  const config = limitedTo(() => (runtime() === tooLarge ? 1 : Number.POSITIVE_INFINITY));
  const env = { ...process.env, HOME: folder, COPILOT_CLI_PATH: await slowRuntime(500, notes) };
  await startEngine(folder, model.url, {}, { config: () => config, env, healthEveryMs: 50 });
  const first = runtime();
  tooLarge = first;
  await until("a new runtime", () => runtime() !== first);
  await until("the end of the old one", () => !isAlive(first));
  expect(readFileSync(notes, "utf8")).toBe("started\nstarted\n");
});

test("nobody's model that is not available is answered by another, with a warning; a person's own is asked as it is", async () => {
  const folder = temporaryFolder();
  const model = await scriptedModel(() => ({ say: "ok" }), {
    models: ["text-embedding-3-small", "scripted-2", "claude-haiku-4.5"],
  });
  const choice = (name: string, named: boolean) => ({
    kind: "provider" as const,
    why: "the test's model",
    model: name,
    named,
    provider: { type: "openai" as const, baseUrl: model.url, wireApi: "completions" as const },
    names: { address: "the test", key: "the test", model: "the test" },
  });
  const engine = await startEngine(folder, model.url, {}, { choice: choice("claude-sonnet-4.6", false) });
  await engine.session(spec("s", folder)).run(turn("hello"));
  const stood = model.requests[0]!.model;
  expect(["scripted-2", "claude-haiku-4.5"]).toContain(stood);
  expect(engine.status()).toMatchObject({
    model: stood,
    notes: [expect.stringContaining('"claude-sonnet-4.6" is not available')],
  });
  expect(engine.modelFor("low")).toMatchObject({ model: "claude-haiku-4.5" });
  expect(engine.modelFor("high")).toMatchObject({ model: stood });
  expect(await engine.serving("text-embedding-3-small")).toEqual({ model: "text-embedding-3-small", standsIn: false });
  expect(await engine.serving("gpt-9")).toEqual({ model: stood, standsIn: true });

  const other = temporaryFolder();
  const named = await startEngine(other, model.url, {}, { choice: choice("my-own-tune", true) });
  await named.session(spec("s", other)).run(turn("hello"));
  expect(model.requests.at(-1)!.model).toBe("my-own-tune");
  expect(named.status().notes[0]).toContain('"my-own-tune" is not in the provider\'s list');
});
