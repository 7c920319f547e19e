import { expect, onTestFinished, test } from "vitest";
import { Config } from "../../src/home/config.ts";
import type { Budgets as BudgetsConfig } from "../../src/home/safety-config.ts";
import type { News } from "../../src/protocol/events.ts";
import type { ModelCall, Spender } from "../../src/protocol/usage.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { createUsageLog } from "../../src/store/usage.ts";
import { createApprovals } from "../../src/tools/approvals/approvals.ts";
import { createBudgets } from "../../src/tools/budgets/budgets.ts";
import { quietLog } from "../support/engine.ts";
import { until } from "../support/until.ts";

interface Life {
  budgets: BudgetsConfig;
  prices?: Config["prices"];
  squads?: Record<string, BudgetsConfig>;
  at?: string;
}

/** Budgets and approvals on a database, as one daemon process has them. */
function life(given: Life, store: Store = openStore(":memory:")) {
  let config = Config.parse({ budgets: given.budgets, prices: given.prices ?? {} });
  let time = given.at ?? "2026-03-01T12:00:00.000Z";
  const news: News[] = [];
  const now = () => new Date(time);
  const deps = { store, emit: (one: News) => news.push(one), log: quietLog };
  const usage = createUsageLog(store, now);
  const approvals = createApprovals({ ...deps, clean: (text) => text, expiresMs: () => 3_600_000, now, everyMs: 20 });
  const squadBudgets = (slug: string) => given.squads?.[slug];
  const budgets = createBudgets({ ...deps, usage, approvals, config: () => config, squadBudgets, now, everyMs: 20 });
  onTestFinished(() => approvals.letGo());
  return {
    ...{ budgets, approvals, news, store },
    set: (next: BudgetsConfig) => {
      config = { ...config, budgets: next };
    },
    travel: (to: string) => {
      time = to;
    },
    /** Asks whether a call may be made. Returns an object with the answer so far. */
    ask(spender: Spender, lifeNumber = 1) {
      const asked: { answer: string | null | undefined; stop: AbortController } = {
        answer: undefined,
        stop: new AbortController(),
      };
      void budgets.permit(spender, { signal: asked.stop.signal, life: lifeNumber }).then((why) => {
        asked.answer = why ?? null;
      });
      onTestFinished(() => asked.stop.abort());
      return asked;
    },
    waiting: (count = 1) => until(`${count} questions`, () => approvals.waiting().length === count && approvals.waiting()),
  };
}

const used = (more: Partial<ModelCall> = {}): ModelCall => ({
  ...{ model: "m", inputTokens: 90, outputTokens: 10, cacheReadTokens: 0, durationMs: 1, ...more },
});
const message = (id = "m_1", conversation = "main"): Spender => ({
  owner: id,
  actor: "orchestrator",
  agent: "orchestrator",
  conversation,
});
const task = (id: string, squad = "web"): Spender => ({
  owner: id,
  actor: `squad:${squad}/Ripley`,
  agent: "Ripley",
  squad,
  task: id,
});
const step = (run: string, key: string): Spender => ({ owner: run, actor: "swarm:engineer", agent: "engineer", run, step: key });
const free = (asked: { answer: string | null | undefined }) => until("a permission", () => asked.answer === null);

test("whoever waits for the same budget waits for one decision, which raises it once", async () => {
  const { budgets, approvals, ask, waiting } = life({ budgets: { run: { calls: 2, tokens: 1_000 } } });
  for (const key of ["a", "b"]) budgets.record(step("r_1", key), used());
  const streams = ["a", "b", "c"].map((key) => ask(step("r_1", key)));
  const [question] = await waiting();
  expect(question).toMatchObject({ kind: "budget", owner: { kind: "run", id: "r_1" } });
  expect(question!.summary).toBe(
    'the run r_1 has used 2 of 2 calls. Allow raises the limit by 1,000 tokens, 2 calls, or by what a note such as "5k tokens" says; deny stops the work.',
  );
  approvals.decide(question!.id, { decision: "allow", scope: "once" }, "me");
  for (const stream of streams) await free(stream);
  for (const key of ["a", "b"]) budgets.record(step("r_1", key), used());
  ask(step("r_1", "a"));
  const [next] = await waiting();
  expect(next!.summary).toMatch(/^the run r_1 has used 4 of 4 calls\. /);
});

test.each([
  ["by 3 calls", /5 of 5 calls/],
  ["3", /5 of 5 calls/],
  ["take 1k tokens and 3 calls more", /5 of 5 calls/],
  ["fine", /4 of 4 calls/],
])("a note can say how far to raise it: %s", async (note, words) => {
  const { budgets, approvals, ask, waiting } = life({ budgets: { conversation: { calls: 2 } } });
  for (let count = 0; count < 2; count += 1) budgets.record(message(), used());
  const first = ask(message());
  approvals.decide((await waiting())[0]!.id, { decision: "allow", scope: "once", note }, "me");
  await free(first);
  for (let count = 0; count < (note === "fine" ? 2 : 3); count += 1) budgets.record(message(), used());
  ask(message());
  expect((await waiting())[0]!.summary).toMatch(words);
});

test("what a note says is raised once, however many waited", async () => {
  const { budgets, approvals, ask, waiting } = life({ budgets: { conversation: { calls: 2 } } });
  for (const id of ["m_1", "m_2"]) budgets.record(message(id), used());
  const all = ["m_1", "m_1", "m_2"].map((id) => ask(message(id)));
  approvals.decide((await waiting())[0]!.id, { decision: "allow", scope: "once", note: "by 1 call" }, "me");
  for (const one of all) await free(one);
  budgets.record(message(), used());
  ask(message());
  expect((await waiting())[0]!.summary).toMatch(/3 of 3 calls/);
});

test("as much again is raised as often as it takes to get above what was used", async () => {
  const { budgets, approvals, ask, waiting } = life({ budgets: { turn: { tokens: 100 } } });
  budgets.record(message(), used({ inputTokens: 340 }));
  const asked = ask(message());
  const [question] = await waiting();
  expect(question!.summary).toMatch(/350 of 100 tokens\. Allow raises the limit by 300 tokens/);
  approvals.decide(question!.id, { decision: "allow", scope: "once" }, "me");
  await free(asked);
});

test("told to stop, a stream that comes later is stopped too; another life of the run asks anew", async () => {
  const { budgets, approvals, ask, waiting } = life({ budgets: { run: { calls: 1 } } });
  budgets.record(step("r_1", "a"), used());
  const first = ask(step("r_1", "a"));
  approvals.decide((await waiting())[0]!.id, { decision: "deny", scope: "once", note: "enough" }, "me");
  await until("the first to be stopped", () => first.answer?.includes("it was not raised: enough"));
  const late = ask(step("r_1", "b"));
  await until("the late one to be stopped", () => late.answer?.includes("it was not raised"));
  expect(approvals.list()).toHaveLength(1);
  ask(step("r_1", "a"), 2);
  await waiting();
  expect(approvals.list()).toHaveLength(2);
});

test("a decision that nobody lived to act on is acted on by the next life", async () => {
  const store = openStore(":memory:");
  const first = life({ budgets: { turn: { calls: 1 } } }, store);
  first.budgets.record(message(), used());
  first.ask(message());
  const [question] = await first.waiting();
  first.approvals.letGo();
  const second = life({ budgets: { turn: { calls: 1 } } }, store);
  second.approvals.decide(question!.id, { decision: "allow", scope: "once" }, "me");
  await free(second.ask(message(), 2));
  expect(second.approvals.list()).toHaveLength(1);
  second.budgets.record(message(), used());
  second.ask(message(), 2);
  await second.waiting();
});

test("a limit that is raised in the config, and a new day, let the work go on by themselves", async () => {
  const { budgets, approvals, ask, waiting, set, travel } = life({
    at: "2026-03-01T23:59:30.000Z",
    budgets: { turn: { calls: 1 }, day: { calls: 1 } },
  });
  budgets.record(message(), used());
  const asked = ask(message());
  expect((await waiting())[0]!.rule).toBe("budgets.turn in config.json");
  set({ turn: { calls: 5 }, day: { calls: 1 } });
  await until("the other budget's question", () => approvals.waiting()[0]?.rule === "budgets.day in config.json");
  expect(asked.answer).toBeUndefined();
  travel("2026-03-02T00:00:01.000Z");
  await free(asked);
  expect(approvals.waiting()).toEqual([]);
});

test("a squad only tightens what holds for all, and its day is its own", async () => {
  const { budgets, ask, waiting } = life({
    budgets: { task: { calls: 2, tokens: 5_000 } },
    squads: { web: { task: { calls: 1 }, day: { calls: 3 } }, api: { task: { calls: 9 } } },
  });
  const rules = async () => (await waiting()).map(({ rule, summary }) => `${rule}: ${summary.split(".")[0]}`);
  budgets.record(task("t_1", "api"), used());
  await free(ask(task("t_1", "api")));
  budgets.record(task("t_2"), used());
  const second = ask(task("t_2"));
  expect(await rules()).toEqual(["budgets.task in config.json: the task t_2 has used 1 of 1 call"]);
  second.stop.abort();
  for (const id of ["t_3", "t_4"]) budgets.record(task(id), used());
  ask(task("t_5"));
  await waiting(2);
  expect(budgets.report().items).toEqual([
    expect.objectContaining({ kind: "day", limit: {}, used: expect.objectContaining({ calls: 4 }) }),
  ]);
});

test("money is what the prices say, without a price it is partial, and what was rehearsed counts for nothing", async () => {
  const { budgets, ask, waiting } = life({
    budgets: { day: { money: 1, calls: 100 } },
    prices: { m: { input: 1_000, output: 5_000, cacheRead: 100 } },
  });
  budgets.record(message(), used({ model: "free", inputTokens: 10_000_000 }));
  budgets.record(message(), used({ model: "rehearsal", rehearsal: true, inputTokens: 10_000_000 }));
  budgets.record(message(), used({ inputTokens: 1_000, cacheReadTokens: 500, outputTokens: 50 }));
  const today = () => budgets.report().items[0];
  expect(today()).toMatchObject({
    ...{ kind: "day", used: { calls: 2, money: 0.8 }, left: { money: 0.2, calls: 98 }, state: "near" },
    ...{ partial: true, unpriced: ["free"] },
  });
  await free(ask(message()));
  budgets.record(message(), used({ inputTokens: 0, outputTokens: 40 }));
  ask(message());
  expect((await waiting())[0]!.summary).toMatch(
    /^today \(2026-03-01, UTC\) 1 of 1 in money were used\. Allow raises the limit by 100 calls, 1 in money/,
  );
  expect(today()).toMatchObject({ state: "used up", left: { money: 0 }, approval: expect.any(String) });
});

test("that little is left is told once of each budget and day", () => {
  const { budgets, news, travel } = life({ budgets: { conversation: { calls: 10 }, day: { tokens: 1_000 } } });
  const told = () => news.filter(({ type }) => type === "budget.reached").map(({ data }) => data);
  for (let count = 0; count < 7; count += 1) budgets.record(message(`m_${count}`), used());
  expect(told()).toEqual([]);
  for (let count = 7; count < 12; count += 1) budgets.record(message(`m_${count}`), used());
  expect(told()).toEqual([
    { kind: "conversation", limit: { calls: 10 }, used: { calls: 8 }, owner: "m_7" },
    { kind: "day", limit: { tokens: 1_000 }, used: { tokens: 800 }, owner: "m_7" },
  ]);
  travel("2026-03-02T12:00:00.000Z");
  for (let count = 0; count < 9; count += 1) budgets.record(message(`n_${count}`, "other"), used());
  expect(told().slice(2)).toEqual([
    { kind: "conversation", limit: { calls: 10 }, used: { calls: 8 }, owner: "n_7" },
    { kind: "day", limit: { tokens: 1_000 }, used: { tokens: 800 }, owner: "n_7" },
  ]);
});

test("a limit that is taken away withdraws its question, and nobody is said to have raised anything", async () => {
  const { budgets, approvals, ask, waiting, set } = life({ budgets: { conversation: { calls: 2 } } });
  for (let count = 0; count < 2; count += 1) budgets.record(message(), used());
  const asked = ask(message());
  const [question] = await waiting();
  set({});
  budgets.limitsChanged({ set: ["conversation"] });
  expect(approvals.find(question!.id)).toMatchObject({ state: "withdrawn", decidedBy: null, note: "the limit was changed" });
  await free(asked);
  budgets.record(message(), used());
  set({ conversation: { calls: 3 } });
  budgets.limitsChanged({ set: ["conversation"] });
  ask(message());
  expect((await waiting())[0]!.summary).toMatch(/^the conversation "main" has used 3 of 3 calls\. /);
});

test("a limit that is set later replaces what raised the earlier one, also when it is set to the same", async () => {
  const { budgets, approvals, ask, waiting } = life({ budgets: { conversation: { calls: 2 }, day: { calls: 2 } } });
  for (let count = 0; count < 2; count += 1) budgets.record(message(), used());
  const asked = ask(message());
  for (const kind of ["conversation", "day"]) {
    const question = await until(kind, () => approvals.waiting().find(({ rule }) => rule?.startsWith(`budgets.${kind}`)));
    approvals.decide(question.id, { decision: "allow", scope: "once", note: "by 10 calls" }, "me");
  }
  await free(asked);
  budgets.limitsChanged({ set: ["conversation"] });
  const [today] = budgets.report().items;
  expect(today).toMatchObject({ kind: "day", limit: { calls: 12 } });
  ask(message());
  expect((await waiting())[0]!.summary).toMatch(/^the conversation "main" has used 2 of 2 calls\. /);
});

test("a change that still leaves no room asks anew, with the new limit; one of another kind leaves the question alone", async () => {
  const { budgets, approvals, ask, waiting, set } = life({ budgets: { turn: { calls: 1 } } });
  for (let count = 0; count < 3; count += 1) budgets.record(message(), used());
  ask(message());
  const [question] = await waiting();
  set({ turn: { calls: 1 }, day: { calls: 50 } });
  budgets.limitsChanged();
  expect(approvals.find(question!.id).state).toBe("waiting");
  set({ turn: { calls: 2 }, day: { calls: 50 } });
  budgets.limitsChanged();
  expect(approvals.find(question!.id).state).toBe("withdrawn");
  expect((await waiting())[0]!.summary).toMatch(/3 of 2 calls/);
});

test("limits that were changed while nobody ran count from the next start, and what is left is told of again", async () => {
  const store = openStore(":memory:");
  const first = life({ budgets: { day: { calls: 2 } } }, store);
  for (let count = 0; count < 2; count += 1) first.budgets.record(message(), used());
  const asked = first.ask(message());
  first.approvals.decide((await first.waiting())[0]!.id, { decision: "allow", scope: "once", note: "by 10 calls" }, "me");
  await free(asked);
  first.approvals.letGo();
  life({ budgets: {} }, store);
  const third = life({ budgets: { day: { calls: 2 } } }, store);
  expect(third.budgets.report().items[0]).toMatchObject({ limit: { calls: 2 }, state: "used up" });
  third.budgets.record(message(), used());
  expect(third.news.filter(({ type }) => type === "budget.reached")).toHaveLength(1);
});

test("a squad's own limit that is set later replaces what raised the earlier one", async () => {
  const squads: Record<string, BudgetsConfig> = { web: { task: { calls: 1 } } };
  const { budgets, approvals, ask, waiting } = life({ budgets: {}, squads });
  budgets.limitsChanged({ squad: "web" });
  budgets.record(task("t_1"), used());
  const asked = ask(task("t_1"));
  approvals.decide((await waiting())[0]!.id, { decision: "allow", scope: "once", note: "by 10 calls" }, "me");
  await free(asked);
  for (let count = 0; count < 2; count += 1) budgets.record(task("t_1"), used());
  squads.web = { task: { calls: 3 } };
  budgets.limitsChanged({ squad: "web" });
  ask(task("t_1"));
  expect((await waiting())[0]!.summary).toMatch(/3 of 3 calls/);
});
