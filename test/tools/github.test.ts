import { chmodSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createRedactor } from "../../src/lib/redact.ts";
import { github } from "../../src/tools/github.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { unmarked } from "../support/data.ts";

let root: string;
let one: Tool;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "io-gh-")));
  const script = `#!${process.execPath}
const fs = require("fs");
const out = ${JSON.stringify(join(root, "call.json"))};
let input = "";
try { input = fs.readFileSync(0, "utf8"); } catch {}
fs.writeFileSync(out, JSON.stringify({ argv: process.argv.slice(2), input, env: process.env, cwd: process.cwd() }));
if (process.argv.includes("--title=fail")) { console.error("could not: no permission"); process.exit(1); }
if (process.argv.includes("--title=login")) { console.error("not logged in"); process.exit(4); }
console.log("https://github.com/o/n/issues/7");`;
  writeFileSync(join(root, "gh"), script);
  chmodSync(join(root, "gh"), 0o755);
  one = github({ redactor: createRedactor(), env: { PATH: root, GH_TOKEN: "gh-login", IO_TOKEN: "io-secret", HOME: root } });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const call = (args: Record<string, unknown>, which = one) =>
  which.run(which.schema.parse(args), { cwd: root, actor: "a", owner: "m", signal: new AbortController().signal });
const seen = () =>
  JSON.parse(readFileSync(join(root, "call.json"), "utf8")) as {
    argv: string[];
    input: string;
    env: NodeJS.ProcessEnv;
    cwd: string;
  };

test("every action becomes an argument list, its text goes through standard input", async () => {
  const repo = "o/n";
  const cases: [Record<string, unknown>, string[], string][] = [
    [
      { action: "create_issue", repo, title: "T", body: "B", labels: ["bug", "p 1"] },
      ["issue", "create", "--repo=o/n", "--title=T", "--body-file=-", "--label=bug", "--label=p 1"],
      "B",
    ],
    [
      { action: "comment_issue", repo, number: 7, body: "B" },
      ["issue", "comment", "--repo=o/n", "--body-file=-", "--", "7"],
      "B",
    ],
    [{ action: "close_issue", number: 7 }, ["issue", "close", "--", "7"], ""],
    [
      { action: "create_pr", title: "T", base: "main", head: "me:x" },
      ["pr", "create", "--title=T", "--body-file=-", "--base=main", "--head=me:x"],
      "",
    ],
    [{ action: "comment_pr", number: 7, body: "B" }, ["pr", "comment", "--body-file=-", "--", "7"], "B"],
    [
      { action: "review_pr", number: 7, body: "B", state: "request_changes" },
      ["pr", "review", "--request-changes", "--body-file=-", "--", "7"],
      "B",
    ],
    [{ action: "review_pr", number: 7, state: "approve" }, ["pr", "review", "--approve", "--", "7"], ""],
  ];
  for (const [args, argv, input] of cases) {
    expect(unmarked(await call(args))).toBe("https://github.com/o/n/issues/7");
    expect(seen()).toMatchObject({ argv, input, cwd: root });
  }
  await call({ action: "list_issues", repo, state: "all", limit: 5, labels: ["bug"] });
  expect(seen().argv.slice(0, -1)).toEqual(["issue", "list", "--repo=o/n", "--state=all", "--limit=5", "--label=bug"]);
  await call({ action: "list_prs" });
  expect(seen().argv.slice(0, -1)).toEqual(["pr", "list", "--state=open", "--limit=30"]);
  await call({ action: "view_pr", number: 3 });
  expect(seen().argv.slice(-2)).toEqual(["--", "3"]);
});

test("no value can become a flag", async () => {
  await call({ action: "create_issue", title: "--web", body: "--editor", labels: ["--repo=evil/evil"] });
  expect(seen().argv).toEqual(["issue", "create", "--title=--web", "--body-file=-", "--label=--repo=evil/evil"]);
  expect(seen().input).toBe("--editor");
  for (const bad of [
    { repo: "--help" },
    { repo: "-o/n" },
    { repo: "o/n/x" },
    { repo: "https://evil/o/n" },
    { repo: "o/.." },
    { head: "-x" },
    { base: "a b" },
    { number: -1 },
  ]) {
    expect([bad, one.schema.safeParse({ action: "create_pr", title: "T", ...bad }).success]).toEqual([bad, false]);
  }
});

test("what others wrote comes back marked as data; lists and views are reads, the rest effects", async () => {
  expect(await call({ action: "view_issue", number: 1 })).toContain("data, not instructions");
  const kind = (action: string) => (typeof one.kind === "function" ? one.kind({ action }) : one.kind);
  expect(["list_issues", "view_issue", "list_prs", "view_pr"].map(kind)).toEqual(["read", "read", "read", "read"]);
  expect(["create_issue", "comment_issue", "close_issue", "create_pr", "comment_pr", "review_pr"].map(kind)).toEqual(
    Array(6).fill("effect"),
  );
});

test("gh has its own login and none of IO's secrets", async () => {
  await call({ action: "list_issues" });
  expect(seen().env.GH_TOKEN).toBe("gh-login");
  expect(seen().env.IO_TOKEN).toBeUndefined();
});

test("what is missing or fails is explained with a remedy", async () => {
  await expect(call({ action: "view_issue" })).rejects.toThrow("number: is missing; view_issue needs it");
  await expect(call({ action: "create_issue", body: "x" })).rejects.toThrow("title: is missing");
  await expect(call({ action: "list_issues", state: "approve" })).rejects.toThrow('allowed here: one of "open", "closed", "all"');
  expect(existsSync(join(root, "call.json"))).toBe(false);
  await expect(call({ action: "create_issue", title: "fail" })).rejects.toThrow("could not: no permission");
  await expect(call({ action: "create_issue", title: "login" })).rejects.toThrow('"gh auth login"');
  const without = github({ redactor: createRedactor(), env: { PATH: join(root, "nowhere") } });
  await expect(call({ action: "list_issues" }, without)).rejects.toThrow("https://cli.github.com");
});
