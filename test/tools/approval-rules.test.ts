import { expect, test } from "vitest";
import { parseConfig } from "../../src/lib/config.ts";
import { covers, exactly, fits } from "../../src/lib/glob.ts";
import type { ApprovalRule } from "../../src/lib/safety-config.ts";
import { visible } from "../../src/lib/visible.ts";
import { unifiedDiff } from "../../src/tools/approvals/diff.ts";
import { ruleFor } from "../../src/tools/approvals/rules.ts";
import { patternFor, readShellLine } from "../../src/tools/approvals/shell-lines.ts";
import { runIo } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";

const rule = (match: string, answer: ApprovalRule["then"], tool = "shell"): ApprovalRule =>
  JSON.parse(JSON.stringify({ tool, match }).replace(/}$/, `,"then":"${answer}"}`)) as ApprovalRule;
const judged = (command: string, rules: ApprovalRule[]) =>
  ruleFor({ tool: "shell", names: [], spelled: [], line: readShellLine(command) }, rules)?.rule.then;

test.each([
  ["git status", "git status", true],
  ["git *", "git status --short", true],
  ["git *", "git", false],
  ["*", "", true],
  ["a*b*c", "a--b--c", true],
  ["a*b*c", "a--c--b", false],
  ["*.ts", "src/a.ts", true],
  ["a*a", "a", false],
  ["ls \\*.ts", "ls *.ts", true],
  ["ls \\*.ts", "ls a.ts", false],
  ["a*", "a\nb", true],
])("the pattern %j and the text %j: %j", (pattern, text, expected) => expect(fits(pattern, text)).toBe(expected));

test("a pattern made of a text fits that text alone", () => {
  for (const text of ["find . -name \\*.ts", "a*b", "echo **", "\\", "\\\\*"]) {
    expect(fits(exactly(text), text)).toBe(true);
    expect(fits(exactly(text), text.replace("*", "x"))).toBe(!text.includes("*"));
  }
});

test("a hostile pattern and a text of a megabyte are compared in time that nobody notices", () => {
  const text = "a".repeat(1_000_000);
  const since = process.cpuUsage();
  expect(fits(`*${"a".repeat(400)}b*${"a".repeat(400)}c*`, text)).toBe(false);
  expect(fits(`${"*a".repeat(400)}*b*`, text)).toBe(false);
  // What this took, whatever else the machine was doing.
  expect(process.cpuUsage(since).user / 1_000).toBeLessThan(100);
});

test("one pattern covers another when nothing fits the other alone", () => {
  expect(covers("git *", "git push *")).toBe(true);
  expect(covers("*", "anything * at all")).toBe(true);
  expect(covers("git push *", "git *")).toBe(false);
  expect(covers("*a*", "*")).toBe(false);
});

const GIT = [rule("git status*", "allow"), rule("git log *", "allow")];
test.each([
  "git status",
  "git status --short",
  "git status && git log -3",
  "git status; git log -3 2>&1",
  "git status >/dev/null | git log x",
  'git log "--format=%h; %s"',
])("%j is allowed by rules for each of its commands", (command) => expect(judged(command, GIT)).toBe("allow"));

test.each([
  "git status; rm -rf x",
  "git status && rm -rf x",
  "git status || rm -rf x",
  "git status | sh",
  "git status & rm -rf x",
  "git status\nrm -rf x",
  "git status $(rm -rf x)",
  "git status `rm -rf x`",
  "git log <(rm -rf x)",
  "git log $HOME",
  "git status > ~/.bashrc",
  "git status >> x",
  "git log x <<EOF\n$(rm -rf x)\nEOF",
  "(git status; rm -rf x)",
  "(git status)",
  "{ git status; }",
  "f() { rm -rf x; }; git status",
  "GIT_PAGER='rm -rf x' git status",
  "export GIT_PAGER=x; git status",
  "if git status; then rm -rf x; fi",
  "git\u00a0status",
  "git status\r",
  '"git status"',
  "",
])("%j is not allowed by them", (command) => expect(judged(command, GIT)).toBeUndefined());

test("a line with more in it is allowed where a rule spells out all of it", () => {
  const line = "git status > out && echo $(date)";
  expect(judged(line, [rule(exactly(line), "allow")])).toBe("allow");
  expect(judged(`${line} x`, [rule(exactly(line), "allow")])).toBeUndefined();
  expect(judged(line, [rule("*", "allow")])).toBe("allow");
});

test("one command is enough to have a line refused or asked about, wherever it hides", () => {
  for (const line of ["rm -rf x", "cd a && rm -rf x", "echo $(rm -rf x)", "X=1 rm -rf x", "(true; rm -rf x)"]) {
    expect(judged(line, [rule("rm *", "deny"), rule("*", "allow")])).toBe("deny");
    expect(judged(line, [rule("rm *", "ask"), rule("*", "allow")])).toBe("ask");
  }
  expect(judged("git push; npm test", [rule("git *", "allow"), rule("npm *", "ask")])).toBe("ask");
});

test("a wider decision keeps the line itself, or its first words where these say it all", () => {
  const kept = (command: string) => patternFor(readShellLine(command));
  expect(kept("npm test -- --run a")).toBe("npm test *");
  expect(kept("npm test")).toBe("npm test");
  expect(kept("npm test -- x > y")).toBe("npm test -- x > y");
  expect(kept("npm test a; rm -rf b")).toBe("npm test a; rm -rf b");
  expect(kept("rm *.log")).toBe("rm \\*.log");
});

test.each<[string, unknown, RegExp]>([
  [
    "contradicting",
    [rule("git push *", "ask"), rule("git push *", "deny")],
    /approvalRules\.1: .* it contradicts approvalRules\.0/,
  ],
  ["said twice", [rule("a", "ask"), rule("a", "ask")], /approvalRules\.1: .*is the same as approvalRules\.0/],
  [
    "out of reach",
    [rule("ls", "ask"), rule("git *", "allow"), rule("git push*", "deny")],
    /approvalRules\.2: .*can never be reached.*approvalRules\.1/,
  ],
  ["out of reach of all", [rule("*", "ask", "*"), rule("x", "deny", "file_ops")], /approvalRules\.1: .*can never be reached/],
  ["empty", [rule("", "ask")], /approvalRules\.0\.match: .*must not be empty/],
  ["blank", [rule("  ", "ask")], /approvalRules\.0\.match: .*must not be empty/],
  ["without an answer", [{ tool: "shell", match: "x" }], /approvalRules\.0\.then/],
  ["with a wrong answer", [rule("x", "maybe" as "ask")], /approvalRules\.0\.then: "maybe".*"allow", "ask", "deny"/],
  ["with a strange tool", [rule("x", "ask", "Rm -rf")], /approvalRules\.0\.tool: .*the name of a tool/],
  ["with a key too many", [{ ...rule("x", "ask"), why: "so" }], /approvalRules\.0\.why/],
  ["no list", { tool: "shell" }, /approvalRules: .*must be a list/],
])("rules that are %s are explained with their place", (_what, approvalRules, words) => {
  expect(() => parseConfig({ approvalRules }, "config.json")).toThrow(words);
});

test("a rule that comes first and is narrower is fine", () => {
  const approvalRules = [
    rule("git push *", "deny"),
    rule("git *", "allow"),
    rule("git *", "ask", "other_tool"),
    rule("*", "ask"),
  ];
  expect(parseConfig({ approvalRules }, "config.json").approvalRules).toHaveLength(4);
});

test("a daemon with broken rules says so and does not start", async () => {
  const home = temporaryHome({ approvalRules: [rule("git *", "allow"), rule("git push", "deny")] });
  const { code, stderr } = await runIo(["--daemon"], home);
  expect(code).toBe(2);
  expect(stderr).toContain("approvalRules.1");
  expect(stderr).toContain("can never be reached");
});

test("a diff shows what changes, with a few lines around it", () => {
  const before = Array.from({ length: 20 }, (_, index) => `line ${index}`).join("\n");
  const after = before.replace("line 10", "line ten");
  expect(unifiedDiff(before, after)).toBe(
    "@@ -8,7 +8,7 @@\n line 7\n line 8\n line 9\n-line 10\n+line ten\n line 11\n line 12\n line 13",
  );
  expect(unifiedDiff("", "a\nb\n")).toBe("@@ -1,0 +1,2 @@\n+a\n+b");
  expect(unifiedDiff("same", "same")).toBe("");
});

test("nothing hides in what a person is shown", () => {
  expect(visible("a\u001b[2Jb\u202ec\u200bd\rtab\tnew\nline")).toBe("a␛[2Jb\\u{202e}c\\u{200b}d␍tab\tnew\nline");
});
