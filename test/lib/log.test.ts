import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createLog } from "../../src/lib/log.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { temporaryFolder } from "../support/home.ts";

test("a log file that is a pipe or a link is not written and blocks nobody", () => {
  const folder = temporaryFolder();
  for (const name of ["piped", "linked"]) mkdirSync(join(folder, name));
  execFileSync("mkfifo", [join(folder, "piped", "io.log")]);
  symlinkSync(join(folder, "elsewhere"), join(folder, "linked", "io.log"));
  for (const name of ["piped", "linked"]) {
    const echoed: string[] = [];
    const log = createLog({ folder: join(folder, name), redactor: createRedactor(), echo: (line) => echoed.push(line) });
    log.info("said");
    expect(echoed).toEqual([expect.stringContaining("said"), expect.stringContaining("the log cannot be written")]);
  }
  expect(existsSync(join(folder, "elsewhere"))).toBe(false);
});

test("no log line contains a secret, wherever it appeared", () => {
  const folder = temporaryFolder();
  const log = createLog({ folder, redactor: createRedactor(["hush-hush-0123"]) });
  log.info("calling with hush-hush-0123", { header: "Bearer hush-hush-0123", deep: { key: "hush-hush-0123" } });
  log.error("it failed", { error: new Error("refused hush-hush-0123", { cause: new Error("hush-hush-0123") }) });
  const text = readFileSync(join(folder, "io.log"), "utf8");
  expect(text).not.toContain("hush-hush");
  const lines = text.trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line).level)).toEqual(["info", "error"]);
});

test("text that looks like a secret is redacted even if it is not a known one", () => {
  const { clean } = createRedactor();
  const seen = [
    `ghp_${"a".repeat(36)}`,
    `sk-${"b".repeat(40)}`,
    `123456789:${"c".repeat(35)}`,
    "Authorization: Bearer abcdefghijklmnop",
    "curl -H 'bearer a1b2c3d4e5f6g7'",
    "HTTP Basic authentication is basic functionality",
    "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----",
  ].map(clean);
  expect(seen).toEqual([
    "[secret]",
    "[secret]",
    "[secret]",
    "Authorization: Bearer [secret]",
    "curl -H 'bearer [secret]'",
    "HTTP Basic authentication is basic functionality",
    "[secret]",
  ]);
});

test("a short word is not treated as a secret", () => {
  const redactor = createRedactor(["key", undefined]);
  redactor.hide("");
  expect(redactor.clean("the key to it")).toBe("the key to it");
});

test("a full log is rotated, and only a few old ones are kept", () => {
  const folder = temporaryFolder();
  const log = createLog({ folder, redactor: createRedactor(), maxBytes: 300, keep: 2 });
  for (let index = 0; index < 40; index += 1) log.info(`line ${index}`);
  const text = (name: string) => readFileSync(join(folder, name), "utf8");
  expect(text("io.log")).toContain("line 39");
  expect(text("io.log").length).toBeLessThanOrEqual(301);
  expect(text("io.log.1").length).toBeGreaterThan(0);
  expect(text("io.log.2").length).toBeGreaterThan(0);
  expect(existsSync(join(folder, "io.log.3"))).toBe(false);
});

test("lines below the level are not written, and a missing folder does not crash the process", () => {
  const lines: string[] = [];
  const log = createLog({
    folder: join(temporaryFolder(), "gone"),
    level: () => "warn",
    redactor: createRedactor(),
    echo: (line) => lines.push(line),
  });
  log.info("quiet");
  log.warn("heard");
  expect(lines[0]).toContain("heard");
  expect(lines[1]).toContain("the log cannot be written");
});
