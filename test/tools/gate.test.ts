import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import type { Log } from "../../src/lib/log.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { exec } from "../../src/process/exec.ts";
import { LONGEST_CALL_MS, type ToolInvocation } from "../../src/protocol/turns.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { createGate, type Gate, type GateDeps } from "../../src/tools/gate.ts";
import { type Tool, type ToolContext, ToolError, tool } from "../../src/tools/tool.ts";
import { smallDisk } from "../support/small-disk.ts";
import { until } from "../support/until.ts";

let store: Store;
let logged: { level: string; message: string; fields: Record<string, unknown> | undefined }[];
beforeEach(() => {
  store = openStore(":memory:");
  logged = [];
});
afterEach(() => store.close());

const log: Log = Object.fromEntries(
  ["debug", "info", "warn", "error"].map((level) => [
    level,
    (message: string, fields?: Record<string, unknown>) => logged.push({ level, message, fields }),
  ]),
) as unknown as Log;

const gateWith = (parts: Partial<GateDeps> = {}): Gate =>
  createGate({ store, redactor: createRedactor(["hunter2-hunter2"]), log, policy: () => undefined, ...parts });

const scope = { cwd: "/tmp", actor: "orchestrator" };
let calls = 0;
const invocation = (parts: Partial<ToolInvocation> = {}): ToolInvocation => {
  calls += 1;
  return {
    callId: `call-${calls}`,
    sessionId: "s",
    owner: "m1",
    attempt: 1,
    signal: new AbortController().signal,
    flush: async () => {},
    ...parts,
  };
};

const note = (
  run: (args: { text: string }, context: ToolContext) => Promise<string>,
  parts: { kind?: "read"; deadlineMs?: number } = {},
): Tool =>
  tool({
    name: "note",
    description: "Writes a note.",
    schema: z.object({ text: z.string(), size: z.enum(["big", "small"]).optional(), count: z.number().int().max(5).optional() }),
    kind: parts.kind ?? "effect",
    deadlineMs: parts.deadlineMs ?? 5_000,
    run,
  });

const bound = (gate: Gate, one: Tool) => gate.bind([one], scope)[0]!;
test("arguments without number or bottom are refused in one sentence, and the journal keeps none of them", async () => {
  const gate = gateWith();
  const one = bound(
    gate,
    note(async () => "ran"),
  );
  const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`argument${at}`, at]));
  let deep: unknown = "x";
  for (let level = 0; level < 1_000; level += 1) deep = [deep];
  for (const [args, why] of [
    [{ text: "a", ...many }, /more than 10,000 entries/],
    [{ text: "a", size: deep }, /more than 64 levels/],
    [
      { text: "a", ...Object.fromEntries(Object.entries(many).slice(0, 5_000)) },
      /"argument9" is not an argument of it.*and 4990 more/,
    ],
  ] as const) {
    const { ok, text } = await one.call(args, invocation());
    expect(ok).toBe(false);
    expect(text).toMatch(why);
    expect(text.length).toBeLessThan(2_000);
  }
  expect(gate.callsOf("m1").every(({ state, args }) => state === "refused" && args.length < 25_000)).toBe(true);
});

const crash = () => store.db.exec("UPDATE tool_calls SET state = 'begun', result = NULL, result_hash = NULL");

test("arguments that do not fit never reach the tool, and the model reads what was found and what is allowed", async () => {
  let ran = 0;
  const one = bound(
    gateWith(),
    note(async () => String(++ran)),
  );
  const say = async (args: unknown) => (await one.call(args, invocation())).text;
  expect(await say({ text: 3 })).toContain("text: found 3; allowed: a string");
  expect(await say({})).toContain("text: is missing; allowed: a string");
  expect(await say({ text: "a", size: "huge" })).toContain('size: found "huge"; allowed: one of "big", "small"');
  expect(await say({ text: "a", count: 9 })).toMatch(/count: found 9; allowed: .*5/);
  expect(await say({ text: "a", txt: "b" })).toMatch(
    /"txt" is not an argument of it, did you mean "text"\?.*Allowed: text, size, count/,
  );
  expect(await say("nonsense")).toContain('Found "nonsense"');
  expect(await say(null)).toContain("text: is missing");
  expect(ran).toBe(0);
  expect(
    gateWith()
      .callsOf("m1")
      .map((call) => call.state),
  ).toEqual(Array(7).fill("refused"));
  expect(gateWith().effectsOf("m1")).toEqual([]);
});

test("the model is shown a schema without noise", () => {
  const { parameters } = bound(
    gateWith(),
    note(async () => ""),
  );
  expect(parameters).toEqual({
    type: "object",
    properties: {
      text: { type: "string" },
      size: { type: "string", enum: ["big", "small"] },
      count: { type: "integer", maximum: 5 },
    },
    required: ["text"],
  });
});

test("schema, policy, intent, flush, run, result: in this order", async () => {
  const order: string[] = [];
  const gate = gateWith({
    policy: (_tool, args) => {
      order.push(`policy ${args.text}`);
      return args.text === "no" ? "That is not allowed." : undefined;
    },
  });
  const one = bound(
    gate,
    note(async () => {
      order.push(`run, journal says ${gate.callsOf("m1").at(-1)?.state}`);
      return "written";
    }),
  );
  const flush = async () => void order.push(`flush, journal says ${gate.callsOf("m1").at(-1)?.state}`);
  expect(await one.call({ text: "yes" }, invocation({ flush }))).toEqual({ ok: true, text: "written" });
  expect(order).toEqual(["policy yes", "flush, journal says begun", "run, journal says begun"]);
  expect(gate.callsOf("m1")).toMatchObject([
    { state: "done", result: "written", tool: "note", kind: "effect", actor: "orchestrator", args: '{"text":"yes"}' },
  ]);
  expect(gate.callsOf("m1")[0]?.resultHash).toMatch(/^[0-9a-f]{64}$/);
  expect(await one.call({ text: "no" }, invocation({ flush }))).toEqual({
    ok: false,
    state: "refused",
    text: "That is not allowed.",
  });
  expect(order).toHaveLength(4);
});

test("a tool's own failure reaches the model word for word, a bug only as an honest sentence", async () => {
  const gate = gateWith();
  const fails = bound(
    gate,
    note(async ({ text }) => {
      if (text === "bug") throw new TypeError("x is not a function at /home/me/secret-place");
      throw new ToolError("There is no such note. Try note_list.");
    }),
  );
  expect(await fails.call({ text: "a" }, invocation())).toEqual({ ok: false, text: "There is no such note. Try note_list." });
  const bug = await fails.call({ text: "bug" }, invocation());
  expect(bug.text).toContain("a fault inside IO");
  expect(bug.text).not.toContain("secret-place");
  expect(logged).toMatchObject([{ level: "error", fields: { tool: "note", error: expect.any(TypeError) } }]);
});

test("a deadline stops the tool and tells the model, even when the tool does not listen", async () => {
  let aborted = false;
  const gate = gateWith({ graceMs: 20 });
  const one = bound(
    gate,
    note(
      (_args, { signal }) => {
        signal.addEventListener("abort", () => {
          aborted = true;
        });
        return new Promise(() => {});
      },
      { deadlineMs: 50 },
    ),
  );
  const answer = await one.call({ text: "a" }, invocation());
  expect(answer.text).toMatch(/did not finish within 0.1 s and was stopped/);
  expect(aborted).toBe(true);
  expect(gate.callsOf("m1")).toMatchObject([{ state: "failed" }]);
});

test("a call whose approval took nearly all of its time ends with its own words, before the runtime gives it up", async () => {
  let now = Date.parse("2026-01-01T00:00:00Z");
  const gate = gateWith({
    graceMs: 20,
    now: () => new Date(now),
    approver: async ({ args, scope: here }) => {
      now += LONGEST_CALL_MS - 50;
      return { args, scope: here };
    },
  });
  const one = bound(
    gate,
    note(() => new Promise(() => {}), { deadlineMs: 600_000 }),
  );
  expect((await one.call({ text: "a" }, invocation())).text).toMatch(/did not finish within 1 s and was stopped/);
});

test("stopping the turn stops the tool, and the journal says that nobody knows what became of the effect", async () => {
  const gate = gateWith();
  const stop = new AbortController();
  const one = bound(
    gate,
    note(
      (_args, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(new Error("stopped")));
          stop.abort();
        }),
    ),
  );
  expect((await one.call({ text: "a" }, invocation({ signal: stop.signal }))).text).toContain("stopped before it finished");
  expect(gate.callsOf("m1")).toMatchObject([{ state: "unknown" }]);
  expect(logged).toEqual([]);
});

test("an effect whose request could not be written down is not done, and may be done later", async () => {
  let ran = 0;
  const gate = gateWith();
  const one = bound(
    gate,
    note(async () => String(++ran)),
  );
  const lost = { flush: () => Promise.reject(new Error("the runtime is gone")) };
  expect(await one.call({ text: "a" }, invocation({ callId: "same", ...lost }))).toMatchObject({ ok: false });
  expect(ran).toBe(0);
  expect(await one.call({ text: "a" }, invocation({ callId: "same", attempt: 2 }))).toEqual({ ok: true, text: "1" });
  expect(gate.callsOf("m1")).toMatchObject([{ state: "done" }]);
});

test("secrets are removed from what the journal keeps and what the model reads; long results are shortened and hashed whole", async () => {
  const gate = gateWith({ keep: 100 });
  const one = bound(
    gate,
    note(async () => `key hunter2-hunter2 ${"x".repeat(1000)}`),
  );
  const answer = await one.call({ text: "my hunter2-hunter2" }, invocation());
  expect(answer.text).toHaveLength(1 + "key [secret] ".length + 1000 - 1);
  const [row] = gate.callsOf("m1");
  expect(row?.args).toBe('{"text":"my [secret]"}');
  expect(row?.result).toMatch(/^key \[secret\] x+\n… \(shortened: \d+ of \d+ characters left out\)$/);
});

test("one long argument does not crowd the others out of the journal, and no half of a secret stays at the cut", async () => {
  const gate = gateWith();
  const one = bound(
    gate,
    tool({
      name: "write",
      description: "write",
      schema: z.object({ content: z.string(), path: z.string() }),
      kind: "effect",
      deadlineMs: 1_000,
      run: async () => "done",
    }),
  );
  await one.call({ content: `${"x".repeat(4_990)}hunter2-hunter2${"y".repeat(30_000)}`, path: "notes/big.txt" }, invocation());
  const [row] = gate.callsOf("m1");
  const args = JSON.parse(row!.args) as { content: string; path: string };
  expect(args.path).toBe("notes/big.txt");
  expect(args.content).toMatch(/^x+\[secret\]yy\n… \(shortened: \d+ of \d+ characters left out\)$/);
});

test("the same call delivered twice runs once, during it and after it", async () => {
  let ran = 0;
  const one = bound(
    gateWith(),
    note(async () => String(++ran)),
  );
  const same = invocation();
  const [a, b] = await Promise.all([one.call({ text: "a" }, same), one.call({ text: "a" }, same)]);
  const c = await one.call({ text: "a" }, { ...same, attempt: 2 });
  expect([a, b, c].map((answer) => answer.text)).toEqual(["1", "1", "1"]);
});

test("a model that counts its calls anew in every answer gets every one of them run, also after a crash", async () => {
  let ran = 0;
  const gate = gateWith();
  const one = bound(
    gate,
    note(async () => String(++ran)),
  );
  const call = (attempt: number, answered = 0) =>
    one.call(
      { text: "npm test" },
      invocation({ callId: "call_0", attempt, settled: () => ({ beforeTurn: 0, total: answered }) }),
    );
  expect([await call(1), await call(1), await call(1)].map(({ text }) => text)).toEqual(["1", "2", "3"]);
  // The third call was interrupted before its answer reached the session: it is answered again, and the next one is a new call.
  expect((await call(2, 2)).text).toBe("3");
  expect((await call(2, 2)).text).toBe("4");
  expect((await call(3, 4)).text).toBe("5");
  expect(gate.effectsOf("m1")).toHaveLength(5);
});

test("an effect finished before a crash is answered from the journal when asked again under a new id, once for each crash", async () => {
  let ran = 0;
  const gate = gateWith();
  const one = bound(
    gate,
    note(async () => `written ${++ran}`),
  );
  await one.call({ text: "a" }, invocation());
  expect(await one.call({ text: "a" }, invocation({ attempt: 2 }))).toEqual({ ok: true, text: "written 1" });
  expect(await one.call({ text: "a" }, invocation({ attempt: 3 }))).toEqual({ ok: true, text: "written 1" });
  expect(gate.effectsOf("m1")).toHaveLength(1);
  expect(await one.call({ text: "a" }, invocation({ attempt: 3 }))).toEqual({ ok: true, text: "written 2" });
  expect(await one.call({ text: "b" }, invocation({ attempt: 3 }))).toEqual({ ok: true, text: "written 3" });
  expect(await one.call({ text: "a" }, invocation({ attempt: 3, owner: "m2" }))).toEqual({ ok: true, text: "written 4" });
});

test("a wanted repeat after a recovery runs when the session still knows the first call", async () => {
  let ran = 0;
  const one = bound(
    gateWith(),
    note(async () => `written ${++ran}`),
  );
  await one.call({ text: "a" }, invocation({ callId: "first" }));
  const repeat = invocation({ attempt: 2, settled: (id) => ({ beforeTurn: 0, total: id === "first" ? 1 : 0 }) });
  expect(await one.call({ text: "a" }, repeat)).toEqual({ ok: true, text: "written 2" });
});

test.each([
  ["behind the prompt the model works on", "s1", { beforeTurn: 0, total: 1 }, 2],
  ["before that prompt", "s1", { beforeTurn: 1, total: 1 }, 1],
  ["in another session, under the same id", "s2", { beforeTurn: 0, total: 1 }, 1],
])("the repeat of an effect whose answer stands %s leaves it done so often: %#", async (_where, sessionId, settled, times) => {
  let ran = 0;
  const one = bound(
    gateWith(),
    note(async () => `written ${++ran}`),
  );
  await one.call({ text: "a" }, invocation({ callId: "call_0", sessionId: "s1" }));
  const again = invocation({
    ...{ callId: "call_0", sessionId, attempt: 2 },
    settled: (_id, session) => (session === sessionId ? settled : { beforeTurn: 0, total: 0 }),
  });
  expect(await one.call({ text: "a" }, again)).toEqual({ ok: true, text: `written ${times}` });
  // A call beyond those that were already made is carried out.
  expect(await one.call({ text: "a" }, again)).toEqual({ ok: true, text: `written ${times + 1}` });
});

test.each(["the same id", "a new id"])(
  "an effect begun before a crash is not run again when it comes back under %s: the model is told, and may decide to repeat it",
  async (which) => {
    let ran = 0;
    const gate = gateWith();
    const one = bound(
      gate,
      note(async () => `written ${++ran}`),
    );
    const first = invocation();
    await one.call({ text: "a" }, first);
    crash();
    const back = which === "the same id" ? { ...first, attempt: 2 } : invocation({ attempt: 2 });
    const told = await one.call({ text: "a" }, back);
    expect(told).toMatchObject({ ok: false, text: expect.stringContaining("whether it took effect is unknown") });
    expect(ran).toBe(1);
    expect(gate.effectsOf("m1")).toMatchObject([{ state: "unknown" }]);
    expect(await one.call({ text: "a" }, invocation({ attempt: 2 }))).toEqual({ ok: true, text: "written 2" });
  },
);

test("a read that was cut off by a crash is simply run again", async () => {
  let ran = 0;
  const one = bound(
    gateWith(),
    note(async () => `read ${++ran}`, { kind: "read" }),
  );
  const first = invocation();
  await one.call({ text: "a" }, first);
  crash();
  expect(await one.call({ text: "a" }, { ...first, attempt: 2 })).toEqual({ ok: true, text: "read 2" });
  expect(await one.call({ text: "a" }, invocation({ attempt: 3 }))).toEqual({ ok: true, text: "read 3" });
});

test("a model that numbers its calls anew in every answer is not given the results of other calls", async () => {
  const one = bound(
    gateWith(),
    note(async ({ text }) => text),
  );
  const answers = [];
  for (const text of ["a", "b", "c"]) answers.push((await one.call({ text }, invocation({ callId: "call_0" }))).text);
  expect(answers).toEqual(["a", "b", "c"]);
});

test("a call that cannot be recorded is not run, and does not reject", async () => {
  let ran = 0;
  const one = bound(
    gateWith(),
    note(async () => String(++ran)),
  );
  store.db.exec("DROP TABLE tool_calls");
  expect(await one.call({ text: "a" }, invocation())).toMatchObject({ ok: false, text: expect.stringContaining("not run") });
  expect(ran).toBe(0);
});

test("an effect of a process that was killed in the middle of it is not done again by the next one", async () => {
  const folder = mkdtempSync(join(tmpdir(), "io-gate-"));
  const path = (name: string) => new URL(`../../src/${name}`, import.meta.url).href;
  const script = `
    import { appendFileSync } from "node:fs";
    import { z } from "zod";
    import { openStore } from ${JSON.stringify(path("store/open.ts"))};
    import { createGate } from ${JSON.stringify(path("tools/gate.ts"))};
    const [folder, attempt, callId] = process.argv.slice(-3);
    const silent = { debug() {}, info() {}, warn() {}, error() {} };
    const gate = createGate({ store: openStore(folder + "/io.db"), redactor: { hide() {}, clean: (text) => text }, log: silent, policy: () => undefined });
    const run = async ({ end }) => {
      appendFileSync(folder + "/effects", end + "\\n");
      if (end === "killed") process.kill(process.pid, "SIGKILL");
      return "written";
    };
    const note = { name: "note", description: "", schema: z.object({ end: z.string() }), kind: "effect", deadlineMs: 5000, run };
    const [bound] = gate.bind([note], { cwd: folder, actor: "a" });
    const base = { sessionId: "s", owner: "m", attempt: Number(attempt), signal: new AbortController().signal, flush: async () => {} };
    console.log((await bound.call({ end: "done" }, { ...base, callId: callId + "1" })).text);
    console.log((await bound.call({ end: "killed" }, { ...base, callId: callId + "2" })).text);
  `;
  const live = (attempt: number, callId: string) =>
    exec(process.execPath, ["--import", "tsx", "--input-type=module", "-e", script, folder, String(attempt), callId], {
      deadlineMs: 30_000,
    });
  try {
    const first = await live(1, "a");
    expect([first.code, first.output]).toEqual([null, "written\n"]);
    const second = await live(2, "b");
    expect(second.output).toMatch(/^written\nThis call of note was begun before an interruption/);
    expect(readFileSync(join(folder, "effects"), "utf8")).toBe("done\nkilled\n");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("on a full disk a call waits for room, with the turn's clock stopped, and is not begun before", async () => {
  const disk = await smallDisk(4);
  const gate = gateWith({ folder: disk.folder });
  const order: string[] = [];
  const one = bound(
    gate,
    note(async () => {
      order.push("ran");
      return "noted";
    }),
  );
  const pause = () => {
    order.push("clock stopped");
    return () => void order.push("clock goes on");
  };
  await disk.fill();
  const answer = one.call({ text: "a" }, invocation({ pause }));
  await until("the clock to be stopped", () => order.length > 0);
  expect(gate.callsOf("m1")).toEqual([]);
  disk.free();
  expect(await answer).toEqual({ ok: true, text: "noted" });
  expect(order).toEqual(["clock stopped", "clock goes on", "ran"]);

  const leave = new AbortController();
  await disk.fill();
  const given = one.call({ text: "b" }, invocation({ pause, signal: leave.signal }));
  leave.abort();
  await given;
  expect(order.slice(-2)).toEqual(["clock stopped", "clock goes on"]);
});
