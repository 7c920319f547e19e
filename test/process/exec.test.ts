import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isAlive } from "../../src/lib/alive.ts";
import { exec } from "../../src/process/exec.ts";
import { temporaryFolder } from "../support/home.ts";
import { until } from "../support/until.ts";

const node = (script: string, options: Parameters<typeof exec>[2] = {}) => exec(process.execPath, ["-e", script], options);
/** A program that starts another, writes its pid to a file, and never ends. */
const parentOf = (file: string) => `
  const child = require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
  require("node:fs").writeFileSync(${JSON.stringify(file)}, String(child.pid));
  setInterval(() => {}, 1000);`;
const pidIn = (file: string) =>
  until("the grandchild's pid", () => {
    const text = statSync(file, { throwIfNoEntry: false }) ? readFileSync(file, "utf8") : "";
    return text === "" ? undefined : Number(text);
  });

test("arguments reach the program unchanged, without shell interpretation", async () => {
  const odd = `$(touch x); "quoted" 'too' * \n&& false`;
  const { code, stdout, stderr } = await exec(process.execPath, ["-p", "process.argv[1]", odd]);
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: `${odd}\n`, stderr: "" });
});

test("a failing program is a result with its exit code, output and errors", async () => {
  const result = await node(`console.log("out"); console.error("err"); process.exitCode = 7`);
  expect(result).toMatchObject({ code: 7, ending: "exited", stdout: "out\n", stderr: "err\n", bytes: 8 });
});

test("a missing program is a result that says so", async () => {
  const result = await exec("/nowhere/at-all", []);
  expect(result).toMatchObject({ code: null, ending: "not-started" });
  expect(result.output).toContain("ENOENT");
});

test("an abort kills the program and everything it started", async () => {
  const file = join(temporaryFolder(), "pid");
  const abort = new AbortController();
  const running = node(parentOf(file), { signal: abort.signal });
  const grandchild = await pidIn(file);
  expect(isAlive(grandchild)).toBe(true);
  abort.abort();
  expect((await running).ending).toBe("aborted");
  await until("the end of the grandchild", () => !isAlive(grandchild));
});

test("a deadline kills the program and everything it started", async () => {
  const file = join(temporaryFolder(), "pid");
  const running = node(parentOf(file), { deadlineMs: 4_000 });
  const grandchild = await pidIn(file);
  expect(await running).toMatchObject({ ending: "deadline", code: null });
  await until("the end of the grandchild", () => !isAlive(grandchild));
});

test("when a program ends, the rest of its process group is killed", async () => {
  const file = join(temporaryFolder(), "pid");
  const script = parentOf(file).replace("setInterval(() => {}, 1000);", "");
  const result = await node(`${script.trimEnd().replace(/setInterval\(\(\) => \{\}, 1000\);$/, "")}; process.exit(0)`);
  expect(result.code).toBe(0);
  const grandchild = await pidIn(file);
  await until("the end of the grandchild", () => !isAlive(grandchild));
});

test("a signal aborted before the start ends the program at once", async () => {
  const result = await node("setInterval(() => {}, 1000)", { signal: AbortSignal.abort() });
  expect(result.ending).toBe("aborted");
});

test("long output keeps its head and tail, and all of it goes to a file", async () => {
  const outputFile = join(temporaryFolder(), "whole.txt");
  const script = `process.stdout.write("HEAD" + "x".repeat(50_000) + "TAIL")`;
  const { output, bytes, sha256 } = await node(script, { maxOutput: 1_000, outputFile });
  expect(output.startsWith("HEAD")).toBe(true);
  expect(output.endsWith("TAIL")).toBe(true);
  expect(output).toContain("49008 characters left out");
  expect(output.length).toBeLessThan(1_100);
  expect(bytes).toBe(50_008);
  expect(sha256).toMatch(/^[0-9a-f]{64}$/);
  expect(readFileSync(outputFile, "utf8")).toBe(`HEAD${"x".repeat(50_000)}TAIL`);
  expect(statSync(outputFile).mode & 0o777).toBe(0o600);
});

test("input is passed on, and a program that ignores it causes no error", async () => {
  expect((await node("process.stdin.pipe(process.stdout)", { input: "grüße" })).stdout).toBe("grüße");
  expect((await node("process.exit(3)", { input: "x".repeat(1_000_000) })).code).toBe(3);
});

test.each<[string, () => ReturnType<typeof exec>, RegExp]>([
  ["more arguments than the system takes", () => node("", { env: { BIG: "x".repeat(5_000_000) } }), /more arguments.*E2BIG/],
  ["one argument that is too long", () => exec(process.execPath, ["-p", "1", "x".repeat(5_000_000)]), /E2BIG/],
  ["a NUL in an argument", () => exec(process.execPath, ["a\0b"]), /NUL/],
  ["a NUL in the program's name", () => exec("a\0b", []), /NUL/],
  ["a NUL in the environment", () => node("", { env: { A: "a\0b" } }), /NUL/],
  ["a NUL in the folder", () => node("", { cwd: "/tmp/a\0b" }), /NUL/],
  ["a folder that is not there", () => node("", { cwd: "/nowhere/at-all" }), /the folder \/nowhere\/at-all does not exist/],
  ["a folder that is a file", () => node("", { cwd: process.execPath }), /is not a folder/],
  ["an output file that cannot be made", () => node("", { outputFile: "/nowhere/at-all/out" }), /ENOENT/],
])("a program that cannot be started for %s is a result that says why", async (_name, run, why) => {
  const result = await run();
  expect(result).toMatchObject({ code: null, ending: "not-started", stdout: "", bytes: 0 });
  expect(result.stderr).toMatch(why);
  expect(result.output).toBe(result.stderr);
});

test("all output is read, however busy this process was when the program ended", async () => {
  const block = (ms: number) => {
    for (const until = performance.now() + ms; performance.now() < until; );
  };
  const late = exec("/bin/sh", ["-c", "sleep 0.3; echo said"]);
  // Both end while the event loop is blocked, so their exits are seen before their output is read.
  const early = exec("/bin/sh", ["-c", "echo early"], {
    onOutput: () => {
      block(500);
      setImmediate(() => block(300));
    },
  });
  block(150);
  expect([(await early).stdout, (await late).stdout]).toEqual(["early\n", "said\n"]);
});
