import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Run, RunStep } from "../../src/protocol/runs.ts";
import type { Activity } from "../../src/protocol/squads.ts";
import { wordsOf } from "../../web/src/chat/tool-lines.ts";
import { readDiff } from "../../web/src/diff/diff.ts";
import { sideBySide } from "../../web/src/diff/rows.ts";
import { byAge } from "../../web/src/lib/age-groups.ts";
import { languageOf } from "../../web/src/lib/code-tokens.ts";
import { ago } from "../../web/src/lib/format.ts";
import { isNotified } from "../../web/src/lib/notifications.ts";
import { colourCode } from "../../web/src/lib/render-markdown.ts";
import { proofOf } from "../../web/src/runs/proof.ts";
import { groupSteps, stepWords } from "../../web/src/runs/step-groups.ts";
import { stillRows } from "../../web/src/runs/use-still.ts";
import { problemsByKey } from "../../web/src/settings/groups.ts";
import { isRefused, problemsOf } from "../../web/src/settings/problems.ts";
import { rowsOf } from "../../web/src/tasks/activity-rows.ts";
import { linkedFrom } from "../../web/src/wiki/backlinks.ts";

test("a call of any of IO's tools is a line that a person reads, without the tool's own name", () => {
  const listed = readFileSync(new URL("../../docs/reference/tools.md", import.meta.url), "utf8");
  const names = [...listed.matchAll(/^## `?([a-z_]+)`?$/gm)].map(([, name]) => name!);
  expect(names.length).toBeGreaterThan(25);
  expect(names.filter((name) => wordsOf(name, "x").includes(name) && name.includes("_"))).toEqual([]);
  expect(wordsOf("todo", "")).toBe("plan the steps");
});

test("a run's steps stand by phase, then by stream from the first on, and those of the whole run come last", () => {
  const step = (key: string, phase: string, stream: number | null, agent: string | null = null) =>
    ({ key, phase, stream, agent, kind: "call" }) as RunStep;
  const phases = ["spec", "implement"].map((name) => ({ name, status: "done" }));
  const streams = [2, 1].map((number) => ({ number, task: `Part ${number}\nmore`, status: "done" }));
  const steps = [
    step("implement/stream-2/draft", "implement", 2, "engineer"),
    step("implement/stream-1/draft", "implement", 1, "engineer"),
    step("spec/draft:pm", "spec", null, "pm"),
    step("run/base", "run", null),
  ];
  const rows = groupSteps({ phases, streams, steps } as unknown as Run);
  expect(rows.map((row) => row.head ?? `${row.step.key}: ${stepWords(row.step)}`)).toEqual([
    ...["spec", "spec/draft:pm: draft", "implement"],
    ...["Stream 1: Part 1", "implement/stream-1/draft: draft", "Stream 2: Part 2", "implement/stream-2/draft: draft"],
    ...["the run itself", "run/base: base"],
  ]);
});

test("a step is named without what its row shows already, and with short hashes", () => {
  const step = (key: string, kind: string) => ({ key, kind, phase: "implement", stream: 1, agent: null }) as unknown as RunStep;
  expect(stepWords(step("run/baseline", "checks"))).toBe("baseline");
  expect(stepWords(step("implement/stream-1/checks/08ba51a0df2f", "checks"))).toBe("08ba51a");
});

test("a difference says what became of a file as a whole, and reads the names as git quotes them", () => {
  const files = readDiff(
    [
      'diff --git "a/caf\\303\\251 \\"x\\".js" "b/caf\\303\\251 \\"x\\".js"\nnew file mode 100644\n--- /dev/null\n+++ "b/x"\n@@ -0,0 +1 @@\n+1',
      "diff --git a/a b/c b/a b/c\ndeleted file mode 100644\n--- a/a b/c\n+++ /dev/null\n@@ -1 +0,0 @@\n-1",
      "diff --git a/old.js b/new name.js\nsimilarity index 100%\nrename from old.js\nrename to new name.js",
      "diff --git a/x.png b/x.png\nindex 1..2 100644\nBinary files a/x.png and b/x.png differ",
      "",
    ].join("\n"),
  );
  expect(files.map(({ path, change, lines }) => [path, change, lines.map(({ text }) => text)])).toEqual([
    ['café "x".js', "new", ["1"]],
    ["a b/c", "deleted", ["1"]],
    ["new name.js", "renamed from old.js", []],
    ["x.png", undefined, ["This file is not text."]],
  ]);
});

test.each([
  [20_000, "just now"],
  [150_000, "2 min ago"],
  [5 * 3_600_000, "09:30"],
  [20 * 3_600_000, "Wed, 18:30"],
  [3 * 86_400_000, "Mon, 14:30"],
  [20 * 86_400_000, "Oct 30"],
  [400 * 86_400_000, "Oct 15 2025"],
  [-3_600_000, "15:30"],
])("what was %i ms ago is said as one would say it", (age, words) => {
  const now = new Date(2026, 10, 19, 14, 30).getTime();
  expect(ago(new Date(now - age).toISOString(), now)).toBe(words);
});

test("the timeline of a run that failed early stands in the order of its work: what never began comes after what failed", () => {
  const step = (key: string, phase: string, stream: number | null = null) =>
    ({ key, phase, stream, agent: null, kind: "git" }) as RunStep;
  const phase = (name: string, status: string) => ({ name, status });
  const shown = (phases: object[], steps: RunStep[]) =>
    groupSteps({ phases, streams: [], steps } as unknown as Run).map((row) => row.head ?? row.step.key);
  const early = [
    step("run/base", "run"),
    step("spec/draft", "spec"),
    step("run/baseline", "implement"),
    step("check/x", "verify"),
  ];
  expect(shown([phase("spec", "failed")], early)).toEqual([
    ...["spec", "spec/draft", "implement", "run/baseline", "verify", "check/x", "the run itself", "run/base"],
  ]);
  const late = [
    ...[step("run/baseline", "implement"), step("spec/draft", "spec"), step("implement/stream-1/open", "implement", 1)],
    ...[step("run/trial", "implement"), step("implement/stream-1/draft", "implement", 1), step("implement/result", "implement")],
  ];
  expect(shown([phase("spec", "done"), phase("implement", "failed")], late)).toEqual([
    ...["spec", "spec/draft", "implement", "run/baseline"],
    ...["Stream 1", "implement/stream-1/open", "implement/stream-1/draft", "run/trial", "implement/result"],
  ]);
});

test("rows that hold still keep their places with what is new about them; what is new waits, unless it comes last", () => {
  const rows = (...keys: string[]) => keys.map((key) => ({ key }));
  const known = rows("a", "c", "e");
  const next = rows("a", "b", "c", "e", "f");
  const still = stillRows(known, next, ({ key }) => key);
  expect(still.map(({ key }) => key)).toEqual(["a", "c", "e", "f"]);
  expect(still[1]).toBe(next[2]);
  expect(stillRows(known, rows("a", "e"), ({ key }) => key).map(({ key }) => key)).toEqual(["a", "e"]);
  expect(stillRows([], next, ({ key }) => key)).toEqual(next);
});

test("what is at work stands first in a list, and what is over by its age, under few headings", () => {
  const now = new Date(2026, 4, 2, 12);
  const made = (id: string, status: string, ago: number, hour = 9) => ({
    ...{ id, status, createdAt: new Date(2026, 4, 2 - ago, hour).toISOString() },
  });
  const items = [made("a", "done", 0), made("b", "running", 0), made("c", "failed", 1, 23), made("d", "queued", 1)];
  const older = [made("e", "done", 1, 0), made("f", "done", 2), made("g", "done", 6), made("h", "done", 7, 23)];
  const oldest = [made("i", "done", 29), made("j", "done", 30), made("k", "done", 365)];
  const rows = byAge([...items, ...older, ...oldest], now);
  expect(rows.map(({ head, item, ...more }) => item?.id ?? [head, ...Object.values(more)])).toEqual([
    ...[["At work", 2], "b", "d", ["Today", 1], "a", ["Yesterday", 2], "c", "e", ["Last 7 days", 2], "f", "g"],
    ...[["Last 30 days", 2], "h", "i", ["Apr 2026", 1], "j", ["May 2025", 1], "k"],
  ]);
  expect(byAge([], now)).toEqual([]);
});

test("a call of a task is one row from its beginning to its end, and none while a question stands for it", () => {
  const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
  const tool = (id: number, summary: string, data: object) =>
    ({ id, kind: "tool", summary, data, createdAt: at(id) }) as Activity;
  const items = [
    tool(1, "write a.js", { tool: "file_ops", callId: "x", state: "started" }),
    tool(2, "write a.js → Wrote a.js", { tool: "file_ops", callId: "x", state: "done" }),
    tool(3, "npm test", { tool: "shell", callId: "y", state: "started" }),
    tool(4, "npm run lint", { tool: "shell", callId: "z", state: "started" }),
  ];
  const told = (isOver: boolean, ...asked: { tool: string; command: string | null }[]) =>
    rowsOf({ items, isOver, asked }).map(({ summary, call, from, to }) => [summary, call?.state, (to - from) / 1_000]);
  const done = ["write a.js → Wrote a.js", "done", 1];
  expect(told(false)).toEqual([done, ["npm test", "started", 0], ["npm run lint", "started", 0]]);
  expect(told(false, { tool: "shell", command: "npm  run lint" })).toEqual([done, ["npm test", "started", 0]]);
  expect(told(false, { tool: "shell", command: null })).toEqual([done, ["npm run lint", "started", 0]]);
  expect(told(true)).toEqual([done, ["npm test", "unknown", 0], ["npm run lint", "unknown", 0]]);
});

test("what a run's end rests on: only checks of the tree that it is, each by its last verdict; without a result, where it stopped", () => {
  const check = (command: string, tree: string, verdict: string, bound = false) => ({
    command,
    tree,
    verdict,
    bound,
    exitCode: 0,
  });
  const loops = [{ outcome: "approved" }, { outcome: "skipped" }];
  const run = { status: "done", outcome: "approved", tree: "b", loops };
  const evidence = [
    check("npm test", "a", "failed"),
    check("npm test", "b", "passed", true),
    check("lint", "b", "could not run"),
  ];
  expect(proofOf({ ...run, evidence } as unknown as Run)).toBe(
    "1 of 2 checks passed · 1 of them notices the change · approved by 1 reviewer",
  );
  const alone = [check("npm test", "b", "passed", true)];
  expect(proofOf({ ...run, loops: [], evidence: alone } as unknown as Run)).toBe("1 of 1 check passed · it notices the change");
  const red = [check("npm test", "b", "failed", true), check("lint", "b", "passed")];
  expect(proofOf({ ...run, loops: [], evidence: red } as unknown as Run)).toBe("1 of 2 checks passed");
  expect(proofOf({ ...run, evidence: [] } as unknown as Run)).toBe("no check ran on the result · approved by 1 reviewer");

  const phase = (name: string, status: string) => ({ name, status });
  const phases = [phase("spec", "done"), phase("design", "skipped"), phase("implement", "failed")];
  expect(proofOf({ ...run, status: "failed", outcome: "failed", phases, evidence: [] } as unknown as Run)).toBe(
    "stopped in implement",
  );
  const early = { ...run, status: "cancelled", outcome: "cancelled", phases: [], evidence: [] };
  expect(proofOf(early as unknown as Run)).toBe("cancelled");
  expect(proofOf({ ...early, status: "running", outcome: null } as unknown as Run)).toBe("under way");
});

test("a difference side by side sets what was removed beside what took its place; coloured code keeps every sign", () => {
  const [file] = readDiff("diff --git a/x.js b/x.js\n@@ -1,4 +1,4 @@\n same\n-old\n-older\n+new\n end\n+first\n-second\n");
  expect(sideBySide(file!.lines).map(({ line, old, now }) => [line?.text, old?.text, now?.text])).toEqual([
    ["@@ -1,4 +1,4 @@", undefined, undefined],
    [undefined, "same", "same"],
    [undefined, "old", "new"],
    [undefined, "older", undefined],
    [undefined, "end", "end"],
    [undefined, undefined, "first"],
    [undefined, "second", undefined],
  ]);
  const code = "const a = `<b>x && 'y'\n</b>`; // \"q\"\n/* one\ntwo */";
  const lines = colourCode(code, "javascript")!;
  expect(lines.map((line) => line.map(([text]) => text).join(""))).toEqual(code.split("\n"));
  expect(lines[3]).toEqual([["two */", "hljs-comment"]]);
  expect(languageOf("src/a.test.TS")).toBe("typescript");
  expect(languageOf("Makefile")).toBeUndefined();
});

test("the pages that link to a page are found however their paths are written", () => {
  const pages = [
    { path: "pages/general/tea.md", title: "Tea", links: ["pages/general/tea.md"] },
    { path: "pages/general/milk.md", title: "Milk", links: ["pages/general/tea.md", "pages/x.md"] },
    { path: "pages/a.md", title: "A", links: ["pages/general/tea.md"] },
  ];
  expect(linkedFrom(pages, "general/tea").map(({ title }) => title)).toEqual(["A", "Milk"]);
  expect(linkedFrom(pages, "general/milk")).toEqual([]);
});

test("what the daemon says against settings stands at the key it names, and the rest apart", () => {
  const message = 'config:\n  port: 99999 is not allowed: it is too large.\n  news.digest: "x" is not allowed.\n  and 3 more';
  expect(problemsByKey(message, ["port", "news"])).toEqual({
    port: "port: 99999 is not allowed: it is too large.",
    news: 'news.digest: "x" is not allowed.',
    "": "and 3 more",
  });
  // Names that contain a dot, one of which begins like another.
  const lines = ["prices.gpt-5.input: no.", "prices.gpt-5.5.input: no.", "prices.: must have a name.", "prices.gpt-5: nor this."];
  expect(problemsOf(lines.join("\n"), "prices", ["", "gpt-5", "gpt-5.5"])).toEqual({
    "gpt-5": `${lines[0]}\n${lines[3]}`,
    "gpt-5.5": lines[1],
    "": lines[2],
  });
  const rule = "approvalRules.1.match: must not be empty";
  expect(["0.match", "1.match", "1.tool"].map((part) => isRefused(rule, "approvalRules", `approvalRules.${part}`))).toEqual([
    ...[false, true, false],
  ]);
  expect(isRefused("tokens must be positive", "budgets", "budgets.day.tokens")).toBe(true);
  expect(isRefused("", "budgets", "budgets.day.tokens")).toBe(false);
});

test("news is notified of by its level as asked for, and never while somebody looks", () => {
  const levels = ["silent", "normal", "urgent"] as const;
  const told = (notify: "off" | "urgent" | "all", isLookedAt = false) =>
    levels.filter((level) => isNotified({ level }, notify, isLookedAt));
  expect([told("off"), told("urgent"), told("all"), told("all", true)]).toEqual([[], ["urgent"], ["normal", "urgent"], []]);
});
