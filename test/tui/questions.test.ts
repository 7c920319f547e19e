import { expect, test } from "vitest";
import type { Approval } from "../../src/protocol/approvals.ts";
import { Questions, yesOrNo } from "../../src/tui/questions.ts";
import { lineText } from "../../src/tui/text/style.ts";
import type { Block } from "../../src/tui/transcript/blocks.ts";

const approval = (id: string, command: string): Approval => ({
  ...{ id, kind: "call", owner: { kind: "message", id: "m_1" }, conversation: "main", squad: null, actor: "orchestrator" },
  ...{ tool: "shell", summary: "a command", command, path: null, diff: null, cwd: "/srv", treeHash: null, reason: null },
  ...{ rule: null, scopes: [], state: "waiting", scope: null, decidedBy: null, note: null, decidedAt: null },
  ...{ createdAt: "2026-01-01T00:00:00Z", expiresAt: "2026-01-01T00:30:00Z" },
});

test("a question that has only just appeared is not answered by an Enter that was meant for something else", () => {
  let clock = 0;
  const questions = new Questions(() => clock);
  const draw = () => questions.lines(20, () => undefined);
  questions.ask(approval("aaaaa", "rm -r build"));
  expect(questions.current()?.isSeen).toBe(false);
  draw();
  clock = 399;
  expect(questions.current()).toMatchObject({ approval: { id: "aaaaa" }, isSeen: false });
  clock = 400;
  expect(questions.current()?.isSeen).toBe(true);
  // The next question also has to be visible for a while, even if it has waited for long.
  questions.ask(approval("bbbbb", "rm -r src"));
  clock = 10_000;
  questions.decided({ ...approval("aaaaa", "rm -r build"), state: "denied" });
  draw();
  expect(questions.current()).toMatchObject({ approval: { id: "bbbbb" }, isSeen: false });
  clock = 10_400;
  expect(questions.current()?.isSeen).toBe(true);
});

test("a command that has no room in the live part is printed whole, once, and its question stays in sight", () => {
  const questions = new Questions(() => 0);
  const command = Array.from({ length: 40 }, (_, at) => `step ${at}\u001b[2J`).join("\n");
  questions.ask(approval("ccccc", command));
  const printed: string[] = [];
  const print = (block: Block) => printed.push(...block(80).map(lineText));
  const shown = questions.lines(10, print).map(lineText);
  expect(shown.slice(0, 2)).toEqual(["? ccccc: see above", expect.stringContaining("Answer: /allow ccccc")]);
  expect(printed.filter((line) => /^ {4}step \d+�\[2J$/.test(line))).toHaveLength(40);
  const before = printed.length;
  questions.lines(10, print);
  expect(printed).toHaveLength(before);
  const short = new Questions(() => 0);
  short.ask(approval("ddddd", "one\ntwo"));
  expect(short.lines(10, print).map(lineText).join("\n")).toMatch(/^\? ddddd: orchestrator[\s\S]* {4}one\n +two\n/);
  expect(printed).toHaveLength(before);
});

test("only a bare yes or no is an answer", () => {
  expect(yesOrNo("y")).toEqual({ decision: "allow", words: [] });
  expect(yesOrNo("Yes project")).toEqual({ decision: "allow", words: ["project"] });
  expect(yesOrNo("n use a branch")).toEqual({ decision: "deny", words: ["use", "a", "branch"] });
  for (const text of ["yes do it now", "nothing", "yesterday", "why?"]) expect([text, yesOrNo(text)]).toEqual([text, undefined]);
});
