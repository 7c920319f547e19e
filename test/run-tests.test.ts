import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { packageRoot } from "../src/lib/package-root.ts";

const FAILS_ONCE = `
import { existsSync, writeFileSync } from "node:fs";
test("fails the first time", () => {
  const isAgain = existsSync("seen");
  writeFileSync("seen", "");
  expect(isAgain).toBe(true);
});`;
const FAILS = 'test("fails always", () => expect(1).toBe(2));';
const PASSES = 'test("passes", () => expect(1).toBe(1));';

/** Runs a new project with these test files. */
function run(files: Record<string, string>, again: boolean, args: readonly string[] = []) {
  const folder = mkdtempSync(join(tmpdir(), "io-again-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "vitest.config.mjs"), "export default { test: { globals: true } };");
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  const env = { ...process.env, NO_COLOR: "1", IO_TEST_AGAIN: again ? "1" : "" };
  const { status, stdout } = spawnSync(process.execPath, [join(packageRoot, "scripts", "run-tests.js"), ...args], {
    cwd: folder,
    env,
    encoding: "utf8",
    timeout: 120_000,
  });
  return { status, flaky: stdout.split("\n").filter((line) => line.startsWith("FLAKY")), output: stdout };
}

test("in the gate a test that fails once and then passes alone is named as flaky, and only its file runs again", () => {
  const { status, flaky, output } = run({ "a.test.js": FAILS_ONCE, "b.test.js": PASSES }, true);
  expect(flaky, output).toEqual(["FLAKY (failed, then passed alone): a.test.js > fails the first time"]);
  expect(output).toContain("Once more, alone: a.test.js\n");
  expect(status).toBe(0);
});

test("of a share of the files, one that failed runs again whatever share it would be in alone", () => {
  const { status, flaky, output } = run({ "a.test.js": FAILS_ONCE, "b.test.js": FAILS_ONCE }, true, ["--shard=2/2"]);
  expect(flaky, output).toHaveLength(1);
  expect(status).toBe(0);
});

test("a test that fails twice fails the gate, also beside one that is flaky", () => {
  const { status, flaky } = run({ "a.test.js": FAILS_ONCE, "b.test.js": FAILS }, true);
  expect(flaky).toEqual([]);
  expect(status).toBe(1);
});

test("an error outside of the tests fails the gate at once", () => {
  const thrown = `${PASSES}\nsetTimeout(() => { throw new Error("nobody waits for this"); }, 0);\ntest("waits", () => new Promise((done) => setTimeout(done, 50)));`;
  const { status, output } = run({ "a.test.js": thrown }, true);
  expect(output).not.toContain("Once more");
  expect(status).toBe(1);
});

test("elsewhere a test that fails once has failed", () => {
  expect(run({ "a.test.js": FAILS_ONCE }, false).status).toBe(1);
});
