import { expect, onTestFinished, test } from "vitest";
import type { Approval } from "../../src/protocol/approvals.ts";
import { createApprovalTable } from "../../src/store/approvals.ts";
import { createConversationRows } from "../../src/store/conversations.ts";
import { createMessages } from "../../src/store/messages.ts";
import { openStore } from "../../src/store/open.ts";
import { openRuns } from "../../src/store/runs.ts";
import { createTaskTable } from "../../src/store/tasks.ts";
import { createUsageLog } from "../../src/store/usage.ts";

const now = "2030-01-01T00:00:00.000Z";

/** A running message of the conversation `main`, running tasks of two squads, and a run. */
function work() {
  const store = openStore(":memory:");
  onTestFinished(() => store.close());
  const approvals = createApprovalTable(store);
  const messages = createMessages(store, createUsageLog(store));
  const tasks = createTaskTable(store, () => new Date(now));
  const runs = openRuns(store);
  messages.add({ id: "m_1", conversation: "main", source: { channel: "api" }, text: "Count" });
  messages.start("m_1", "session");
  const origin = { conversation: "main", source: { channel: "api" as const } };
  for (const slug of ["shop", "barn"])
    store.db
      .prepare(
        "INSERT INTO squads (slug, name, project_path, universe, status, created_at, updated_at) VALUES (?, ?, ?, 'a-team', 'idle', ?, ?)",
      )
      .run(slug, slug, `/${slug}`, now, now);
  tasks.insertTask({ id: "t_shop", squad: "shop", agent: "Face", description: "Count", origin });
  tasks.insertTask({ id: "t_barn", squad: "barn", agent: "Face", description: "Count" });
  for (const id of ["t_shop", "t_barn"]) tasks.updateTask(id, { status: "running" });
  runs.create({ id: "r_1", projectPath: "/shop", issue: "Count", inputs: "{}", now });
  const held = () => ({
    message: messages.find("m_1")?.waitsFor,
    conversation: createConversationRows(store).find("main")?.waitsFor,
    shop: tasks.findTask("t_shop")?.waitsFor,
    barn: tasks.findTask("t_barn")?.waitsFor,
    run: runs.waitsFor(runs.get("r_1")!),
  });
  const ask = (id: string, kind: Approval["kind"], owner: Approval["owner"], rule: string) =>
    approvals.insert({
      ...{ id, kind, owner, rule, actor: "orchestrator", tool: "shell", hash: id, summary: "", project: null, scopes: [] },
      ...{ createdAt: now, expiresAt: now },
    });
  return { approvals, tasks, held, ask };
}

const nothing = { message: undefined, conversation: undefined, shop: undefined, barn: undefined, run: undefined };
const budget = { kind: "budget", approvals: ["abcde"] };

test("a question holds up the work that asked it, until it is decided or the work has ended", () => {
  const { approvals, tasks, held, ask } = work();
  expect(held()).toEqual(nothing);
  ask("one", "call", { kind: "task", id: "t_shop" }, "effects");
  ask("two", "budget", { kind: "task", id: "t_shop" }, "budgets.task in config.json");
  expect(held()).toEqual({ ...nothing, shop: { kind: "approval", approvals: ["one", "two"] } });
  approvals.end("one", { state: "allowed", at: now });
  expect(held()).toEqual({ ...nothing, shop: { kind: "budget", approvals: ["two"] } });
  expect(tasks.listTasks({ squad: "shop" })[0]?.waitsFor).toEqual({ kind: "budget", approvals: ["two"] });
  expect(tasks.updateTask("t_shop", { status: "failed" })).not.toHaveProperty("waitsFor");
  ask("three", "call", { kind: "message", id: "m_1" }, "effects");
  const waitsFor = { kind: "approval", approvals: ["three"] };
  expect(held()).toEqual({ ...nothing, message: waitsFor, conversation: waitsFor });
});

test.each([
  ["budgets.day in config.json", { message: budget, conversation: budget, shop: budget, barn: budget, run: budget }],
  ["budgets.day of the squad shop", { ...nothing, shop: budget }],
  ["budgets.conversation in config.json", { ...nothing, message: budget, conversation: budget, shop: budget }],
  ["budgets.task in config.json", { ...nothing, shop: budget }],
])("the question about a used-up limit, %s, holds up everything that shares the limit", (rule, expected) => {
  const { held, ask } = work();
  ask("abcde", "budget", { kind: "task", id: "t_shop" }, rule);
  expect(held()).toEqual(expected);
});
