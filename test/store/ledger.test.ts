import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, onTestFinished, test } from "vitest";
import type { ModelCall, Spender, UsageGroup } from "../../src/protocol/usage.ts";
import { MIGRATIONS } from "../../src/store/migrations.ts";
import { openStore } from "../../src/store/open.ts";
import { createUsageLog } from "../../src/store/usage.ts";
import { createSummaries } from "../../src/tools/budgets/summary.ts";
import { temporaryFolder } from "../support/home.ts";

const GROUPS: UsageGroup[] = ["conversation", "squad", "agent", "task", "run", "model", "day", "source", "actor"];
const PRICES = { dear: { input: 3, output: 15, cacheRead: 0.3 }, cheap: { input: 0.1, output: 0.7 } };

function open(path = ":memory:", migrations = MIGRATIONS) {
  const store = openStore(path, { migrations });
  onTestFinished(() => store.close());
  return store;
}

const call = (more: Partial<ModelCall> = {}): ModelCall => ({
  ...{ model: "dear", inputTokens: 1_000, outputTokens: 100, cacheReadTokens: 0, durationMs: 5, ...more },
});
const message: Spender = { owner: "m_1", actor: "orchestrator", agent: "orchestrator", conversation: "main", source: "tui" };
const task: Spender = {
  ...{ owner: "t_1", actor: "squad:web/Ripley", agent: "Ripley", squad: "web", task: "t_1" },
  ...{ conversation: "main", source: "tui" },
};
const step: Spender = { owner: "r_1", actor: "swarm:pm", agent: "pm", run: "r_1", step: "spec/draft:pm", source: "cli" };

test("every call is in exactly one line of each summary, and each total is the sum of its lines", () => {
  const store = open();
  let at = new Date("2026-03-01T10:00:00.000Z");
  const usage = createUsageLog(store, () => at);
  const summary = createSummaries({ usage, prices: () => PRICES, now: () => at });
  usage.record(message, call());
  usage.record(message, call({ model: "unknown", inputTokens: 7 }));
  usage.record(task, call({ cacheReadTokens: 400 }));
  usage.record({ ...task, owner: "t_2", task: "t_2", squad: "api" }, call({ model: "cheap", inputTokens: 3, outputTokens: 1 }));
  usage.record(step, call({ rehearsal: true }));
  at = new Date("2026-03-03T10:00:00.000Z");
  usage.record({ owner: "doctor", actor: "doctor", agent: "doctor" }, call({ model: "cheap", inputTokens: 1, outputTokens: 0 }));

  for (const by of GROUPS) {
    const { total, items } = summary(by, "all");
    const sum = (key: "calls" | "inputTokens" | "outputTokens" | "cacheReadTokens" | "rehearsalCalls") =>
      items.reduce((all, item) => all + item[key], 0);
    expect({ by, calls: total.calls, money: total.money }).toEqual({ by, calls: 6, money: 0.007921 });
    for (const key of ["calls", "inputTokens", "outputTokens", "cacheReadTokens", "rehearsalCalls"] as const)
      expect({ by, key, sum: sum(key) }).toEqual({ by, key, sum: total[key] });
    expect(Math.round(items.reduce((all, { money }) => all + money, 0) * 1e6)).toBe(Math.round(total.money * 1e6));
    expect(total).toMatchObject({ partial: true, unpriced: ["unknown"], rehearsalCalls: 1 });
  }
  const names = (by: UsageGroup) => summary(by, "all").items.map(({ name, squad }) => (squad ? `${squad}/${name}` : name));
  expect(names("conversation").sort()).toEqual(["(none)", "main"]);
  expect(names("squad").sort()).toEqual(["(none)", "api", "web"]);
  expect(names("agent").sort()).toEqual(["api/Ripley", "doctor", "orchestrator", "pm", "web/Ripley"]);
  expect(names("task").sort()).toEqual(["(none)", "t_1", "t_2"]);
  expect(names("run").sort()).toEqual(["(none)", "r_1"]);
  expect(names("source").sort()).toEqual(["(none)", "cli", "tui"]);
  expect(names("day")).toEqual(["2026-03-01", "2026-03-03"]);
  // Cached tokens are part of the input: 600 at 3, 400 at 0.3 and 100 at 15 per million.
  expect(summary("task", "all").items.find(({ name }) => name === "t_1")).toMatchObject({ money: 0.00342, partial: false });
  expect(summary("run", "all").items.find(({ name }) => name === "r_1")).toMatchObject({
    ...{ money: 0, partial: false, calls: 1, rehearsalCalls: 1 },
  });
  expect(summary("model", "1d")).toMatchObject({ since: "2026-03-02", total: { calls: 1 }, items: [{ name: "cheap" }] });
  expect(summary("task").since).toBe("2026-02-01");
  expect(() => summary("model", "yesterday")).toThrow(/7d, a date/);
});

test("usage rows are never changed, and their sums stay when the rows are deleted", () => {
  const store = open();
  const usage = createUsageLog(store);
  const summary = createSummaries({ usage, prices: () => PRICES });
  usage.record(task, call());
  const before = GROUPS.map((by) => summary(by, "all"));
  expect(() => store.db.exec("UPDATE usage SET input_tokens = 0")).toThrow(/never changed/);
  store.db.exec("DELETE FROM usage");
  expect(GROUPS.map((by) => summary(by, "all"))).toEqual(before);
});

test("of a million tasks and conversations the largest are listed, and the others are one line", () => {
  const usage = createUsageLog(open());
  const summary = createSummaries({ usage, prices: () => PRICES });
  for (let index = 1; index <= 600; index += 1)
    usage.record({ ...task, owner: `t_${index}`, task: `t_${index}` }, call({ inputTokens: index }));
  const { items, total } = summary("task");
  expect(items).toHaveLength(501);
  expect(items[0]).toMatchObject({ name: "t_600" });
  expect(items.at(-1)).toMatchObject({ name: "(others)", calls: 100 });
  expect(total).toMatchObject({ calls: 600, inputTokens: 180_300 });
});

test("usage of earlier versions is attributed by its owner, and their sums are not lost", () => {
  const path = join(temporaryFolder(), "io.db");
  const before = openStore(path, { migrations: MIGRATIONS.filter(({ name }) => name < "0012") });
  before.db.exec(`
    INSERT INTO messages (id, conversation, source, text, status, created_at) VALUES
      ('m_1', 'kitchen', '{"channel":"telegram","chatId":1}', 'x', 'done', '2026-01-01'), ('m_2', 'torn', 'torn {', 'x', 'done', '2026-01-01');
    INSERT INTO squads (slug, name, project_path, universe, created_at, updated_at) VALUES ('web', 'Web', '/w', 'aliens', '', '');
    INSERT INTO agent_tasks (id, squad_slug, agent, description, status, origin, created_at) VALUES
      ('t_1', 'web', 'Ripley', 'd', 'done', '{"conversation":"main","source":{"channel":"api"}}', '2026-01-01'),
      ('t_2', 'web', 'Ripley', 'd', 'done', 'torn {', '2026-01-01');
    INSERT INTO runs (id, status, project_path, issue, inputs, conversation, squad, created_at) VALUES
      ('r_1', 'done', '/p', 'i', '{}', 'main', 'web', '2026-01-01');`);
  const insert = before.db.prepare(
    "INSERT INTO usage (owner, actor, model, input_tokens, output_tokens, cache_read_tokens, duration_ms, created_at) VALUES (?, ?, ?, ?, 1, 0, 5, '2026-01-01T00:00:00.000Z')",
  );
  insert.run("m_1", "orchestrator", "dear", 10);
  insert.run("m_2", "orchestrator", "dear", 20);
  insert.run("t_1", "squad:web/Ripley", "dear", 40);
  insert.run("t_2", "squad:web/Ripley", "cheap", 80);
  insert.run("r_1", "swarm:pm", "dear", 160);
  insert.run("m_gone", "orchestrator", "rehearsal", 320);
  insert.run("m_old", "orchestrator", "dear", 640);
  before.db.exec("DELETE FROM usage WHERE owner = 'm_old'");
  before.close();

  const usage = createUsageLog(open(path));
  const summary = createSummaries({ usage, prices: () => ({}) });
  const lines = (by: UsageGroup) =>
    Object.fromEntries(
      summary(by, "all").items.map(({ name, squad, inputTokens }) => [squad ? `${squad}/${name}` : name, inputTokens]),
    );
  expect(lines("model")).toEqual({ dear: 870, cheap: 80, rehearsal: 320 });
  expect(lines("conversation")).toEqual({ kitchen: 10, torn: 20, main: 200, "(none)": 1_040 });
  expect(lines("source")).toEqual({ telegram: 10, api: 40, "(none)": 1_220 });
  expect(lines("task")).toEqual({ t_1: 40, t_2: 80, "(none)": 1_150 });
  expect(lines("run")).toEqual({ r_1: 160, "(none)": 1_110 });
  expect(lines("squad")).toEqual({ web: 120, "(none)": 1_150 });
  expect(lines("agent")).toEqual({ "web/Ripley": 120, orchestrator: 990, pm: 160 });
  expect(lines("actor")).toEqual({ "squad:web/Ripley": 120, orchestrator: 990, "swarm:pm": 160 });
  for (const by of GROUPS)
    expect({ by, ...summary(by, "all").total }).toMatchObject({ by, calls: 7, inputTokens: 1_270, rehearsalCalls: 1 });
  const rows = new DatabaseSync(path, { readOnly: true });
  onTestFinished(() => rows.close());
  expect(rows.prepare("SELECT conversation, squad, agent, run FROM usage WHERE owner = 'r_1'").get()).toEqual({
    ...{ conversation: "main", squad: "web", agent: "pm", run: "r_1" },
  });
});
