import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { createQuestionsHere } from "../../src/cli/questions-here.ts";
import type { Event, News } from "../../src/protocol/events.ts";
import { openStore } from "../../src/store/open.ts";
import { type Approvals, createApprovals } from "../../src/tools/approvals/approvals.ts";
import type { Asked } from "../../src/tools/approvals/asked.ts";
import { quietLog } from "../support/engine.ts";
import { temporaryFolder } from "../support/home.ts";
import { until } from "../support/until.ts";

/** Approvals with their own store. */
function approvalsOn(path: string, hear: (event: Event) => void = () => {}): Approvals {
  const store = openStore(path);
  const emit = (news: News) => store.afterCommit(() => hear({ ...news, id: 1 } as Event));
  const approvals = createApprovals({ store, emit, log: quietLog, clean: (text) => text, expiresMs: () => 60_000, everyMs: 20 });
  onTestFinished(() => {
    approvals.letGo();
    store.close();
  });
  return approvals;
}
const question = (command: string, more: Partial<Asked> = {}): Asked => ({
  kind: "call",
  owner: "r_1/implement/0#1",
  actor: "swarm:engineer",
  tool: "shell",
  args: { command },
  summary: command,
  command,
  signal: new AbortController().signal,
  ...more,
});

test("a question of a run is decided by whoever sees it", async () => {
  const approvals = approvalsOn(join(temporaryFolder(), "io.db"));
  const verdict = approvals.ask(question("make"));
  const [waiting] = approvals.waiting();
  expect(waiting).toMatchObject({ owner: { kind: "run", id: "r_1" }, command: "make" });
  approvals.decide(waiting!.id, { decision: "allow", scope: "once" }, "api");
  expect(await verdict).toMatchObject({ state: "allowed", approval: { decidedBy: "api" } });
});

test("whoever asks with the same key waits for the same decision", async () => {
  const approvals = approvalsOn(":memory:");
  const gone = new AbortController();
  const budget = { kind: "budget" as const, tool: "budget", key: "run:r_1:1000 tokens" };
  const first = approvals.ask(question("raise by 1000", { ...budget, signal: gone.signal }));
  const others = [1, 2].map((step) => approvals.ask(question("raise by 1000", { ...budget, owner: `r_1/step/${step}#1` })));
  gone.abort();
  expect((await first).state).toBe("let go");
  approvals.withdraw("r_1");
  const waiting = approvals.waiting();
  expect(waiting).toHaveLength(1);
  approvals.decide(waiting[0]!.id, { decision: "deny", scope: "once", note: "enough" }, "api");
  expect((await Promise.all(others)).map(({ state, approval }) => [state, approval.note])).toEqual([
    ["denied", "enough"],
    ["denied", "enough"],
  ]);
});

test("the terminal of a run asks one question after another, and takes y and n for an answer", async () => {
  const input = new PassThrough();
  const said: string[] = [];
  const here = { hear: (_event: Event) => {} };
  const approvals = approvalsOn(":memory:", (event) => here.hear(event));
  const questions = createQuestionsHere({
    isOurs: ({ owner }) => owner.id === "r_1",
    decide: (id, decision) => approvals.decide(id, decision, "terminal"),
    note: (text) => said.push(text),
    input,
  });
  here.hear = questions.hear;
  onTestFinished(() => questions.close());
  const verdicts = ["first", "second"].map((command) => approvals.ask(question(command)));
  const foreign = approvals.ask(question("foreign", { owner: "r_2/x#1" }));
  const shown = (command: string) => said.filter((text) => text.includes(`    ${command}\n`)).length;
  await until("the first", () => shown("first") === 1);
  expect(shown("second")).toBe(0);
  input.write("what?\n");
  await until("the first once more", () => shown("first") === 2);
  input.write("y\n");
  await until("the second", () => shown("second") === 1);
  input.write("No\n");
  expect((await Promise.all(verdicts)).map(({ state, approval }) => [state, approval.decidedBy])).toEqual([
    ["allowed", "terminal"],
    ["denied", "terminal"],
  ]);
  expect(shown("foreign")).toBe(0);
  approvals.withdraw("r_2");
  expect((await foreign).state).toBe("withdrawn");
});
