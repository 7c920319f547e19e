import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readDaemonFile } from "../../src/home/daemon-file.ts";
import { isAlive } from "../../src/lib/alive.ts";
import { writeFileAtomic } from "../../src/lib/atomic.ts";
import { clipToTokens, estimateTokens } from "../../src/lib/estimate-tokens.ts";
import { commandOf, hasEnvironment, residentMb, waitForExit } from "../../src/process/processes.ts";
import { temporaryFolder } from "../support/home.ts";
import { until } from "../support/until.ts";

test("a file is replaced completely, with its mode, and no temporary file remains", () => {
  const folder = temporaryFolder();
  const file = join(folder, "note.txt");
  writeFileSync(file, "old", { mode: 0o644 });
  writeFileAtomic(file, "new");
  expect(readFileSync(file, "utf8")).toBe("new");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(["note.txt"]);
});

test("a failed write leaves the old file and no temporary file", () => {
  const folder = temporaryFolder();
  mkdirSync(join(folder, "taken"));
  expect(() => writeFileAtomic(join(folder, "taken"), "x")).toThrow();
  expect(readdirSync(folder)).toEqual(["taken"]);
});

test("a process is visible with its command, memory and environment until it ends", async () => {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)", "marker"], { env: { COLOUR: "green" } });
  const pid = child.pid!;
  await new Promise((ready) => child.once("spawn", ready));
  expect(isAlive(pid)).toBe(true);
  await until("the program to be loaded", async () => (await residentMb(pid)) > 0);
  expect(await commandOf(pid)).toContain("marker");
  expect(hasEnvironment(pid, "COLOUR", "green")).not.toBe(false);
  expect(await waitForExit(pid, 20)).toBe(false);
  child.kill("SIGKILL");
  expect(await waitForExit(pid, 5_000)).toBe(true);
  expect(isAlive(pid)).toBe(false);
});

test("a daemon.json of a dead daemon, or a truncated one, is ignored", async () => {
  const file = join(temporaryFolder(), "daemon.json");
  const daemon = { pid: process.pid, host: "127.0.0.1", port: 1, version: "0", startedAt: "now" };
  writeFileSync(file, JSON.stringify(daemon));
  expect(readDaemonFile(file)).toEqual(daemon);
  writeFileSync(file, JSON.stringify({ ...daemon, pid: 2 ** 22 + 1 }));
  expect(readDaemonFile(file)).toBeUndefined();
  writeFileSync(file, '{"pid": 1');
  expect(readDaemonFile(file)).toBeUndefined();
});

test("an estimate grows with the text, and a clipped text fits", () => {
  expect(estimateTokens("")).toBe(0);
  expect(estimateTokens("日本語のテキスト")).toBeGreaterThan(estimateTokens("abcdefgh"));
  const text = Array.from({ length: 200 }, (_, index) => `line number ${index}`).join("\n");
  const clipped = clipToTokens(text, 100);
  expect(estimateTokens(clipped)).toBeLessThanOrEqual(100);
  expect(clipped).toMatch(/line number \d+…$/);
  expect(clipToTokens("short", 100)).toBe("short");
});
