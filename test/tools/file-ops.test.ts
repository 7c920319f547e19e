import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ensureHome, type Paths, pathsOf } from "../../src/lib/paths.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { openStore } from "../../src/store/open.ts";
import { fileOps } from "../../src/tools/file-ops.ts";
import { createGate } from "../../src/tools/gate.ts";
import { createPathGuard, type PathGuard } from "../../src/tools/guard.ts";
import { createPolicy } from "../../src/tools/policy.ts";
import { unmarked } from "../support/data.ts";

let root: string;
let cwd: string;
let paths: Paths;
let guard: PathGuard;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "io-files-")));
  cwd = join(root, "project");
  mkdirSync(cwd);
  paths = pathsOf({ IO_HOME: join(root, "home"), HOME: root });
  ensureHome(paths);
  writeFileSync(paths.token, "hush-hush");
  guard = createPathGuard({ paths, packageRoot: join(root, "package"), selfEdit: () => false });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** Through the gate, as the model does it. */
async function call(args: Record<string, unknown>, write = true): Promise<{ ok: boolean; text: string }> {
  const store = openStore(":memory:");
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  const gate = createGate({
    store,
    redactor: createRedactor(),
    log: silent,
    policy: createPolicy({ guard, keep: [paths.home] }),
  });
  const [bound] = gate.bind([fileOps({ guard, write })], { cwd, actor: "orchestrator" });
  const signal = new AbortController().signal;
  const answer = await bound!.call(args, { callId: "c", sessionId: "s", owner: "m", attempt: 1, signal, flush: async () => {} });
  store.close();
  return answer;
}

test("a file is written with its folders, and read back", async () => {
  expect(await call({ operation: "write", path: "a/b/c.txt", content: "grüße\n" })).toMatchObject({
    ok: true,
    text: expect.stringContaining("Wrote a/b/c.txt (8 bytes)"),
  });
  const { text } = await call({ operation: "read", path: "a/b/c.txt" });
  expect(unmarked(text)).toBe("grüße\n");
  expect(text).toMatch(/^--- data ([0-9a-f]{12})\ngrüße\n\n--- end \1$/);
  expect(statSync(join(cwd, "a/b/c.txt")).mode & 0o777).toBe(0o644 & ~process.umask());
  expect(readdirSync(join(cwd, "a/b"))).toEqual(["c.txt"]);
});

test("a replaced file keeps its mode, and a link to it stays a link", async () => {
  writeFileSync(join(cwd, "run.sh"), "old");
  chmodSync(join(cwd, "run.sh"), 0o775);
  symlinkSync("run.sh", join(cwd, "link"));
  expect(await call({ operation: "write", path: "link", content: "new" })).toMatchObject({ ok: true });
  expect(readFileSync(join(cwd, "run.sh"), "utf8")).toBe("new");
  expect(statSync(join(cwd, "run.sh")).mode & 0o777).toBe(0o775);
  expect(realpathSync(join(cwd, "link"))).toBe(join(cwd, "run.sh"));
});

test("a long file is cut with a note of its size, a binary one is named as such", async () => {
  writeFileSync(join(cwd, "long"), "ä".repeat(50_000));
  const { text } = await call({ operation: "read", path: "long" });
  expect(unmarked(text)).toMatch(
    /^ä{8000}\n\[Only the first 8000 characters of long are shown; the whole file has 100000 bytes\.\]$/,
  );
  writeFileSync(join(cwd, "a.bin"), Buffer.from([1, 2, 0, 3]));
  writeFileSync(join(cwd, "latin1.txt"), Buffer.from([0x66, 0xfc, 0x72]));
  expect((await call({ operation: "read", path: "a.bin" })).text).toBe(
    "a.bin is a binary file of 4 bytes; its bytes are not shown.",
  );
  expect((await call({ operation: "read", path: "latin1.txt" })).text).toContain("binary");
  writeFileSync(join(cwd, "empty"), "");
  expect((await call({ operation: "read", path: "empty" })).text).toBe("empty is empty.");
});

test("folders are listed with sizes, without opening .git and node_modules, and not without end", async () => {
  for (const folder of ["src/deep", ".git/objects", "node_modules/x"]) mkdirSync(join(cwd, folder), { recursive: true });
  writeFileSync(join(cwd, "src/deep/a.ts"), "x".repeat(1500));
  writeFileSync(join(cwd, "node_modules/x/index.js"), "");
  symlinkSync("..", join(cwd, "src/up"));
  expect(unmarked((await call({ operation: "list", path: "." })).text)).toBe(".git/\nnode_modules/\nsrc/");
  expect(unmarked((await call({ operation: "list", path: ".", recursive: true })).text)).toBe(
    ".git/ (not opened)\nnode_modules/ (not opened)\nsrc/\nsrc/deep/\nsrc/deep/a.ts  1.5 KB\nsrc/up -> ..",
  );
  mkdirSync(join(cwd, "many"));
  for (let index = 0; index < 600; index += 1) writeFileSync(join(cwd, "many", `f${index}`), "");
  const many = unmarked((await call({ operation: "list", path: "many" })).text).split("\n");
  expect(many).toHaveLength(501);
  expect(many.at(-1)).toContain("Only the first 500 entries");
});

test("what cannot be done is said in a sentence", async () => {
  execFileSync("mkfifo", [join(cwd, "pipe")]);
  writeFileSync(join(cwd, "file"), "x");
  const said = async (args: Record<string, unknown>) => {
    const answer = await call(args);
    expect(answer.ok).toBe(false);
    return answer.text;
  };
  expect(await said({ operation: "read", path: "nowhere" })).toContain("nowhere cannot be read: it does not exist");
  expect(await said({ operation: "read", path: "." })).toContain('is a folder; use operation "list"');
  expect(await said({ operation: "read", path: "pipe" })).toContain("not a regular file");
  expect(await said({ operation: "write", path: "pipe", content: "" })).toContain("not a regular file");
  expect(await said({ operation: "write", path: "file/x", content: "" })).toContain("is not a folder");
  expect(await said({ operation: "write", path: "x" })).toContain("content: is missing");
  expect(await said({ operation: "write", path: ".", content: "" })).toContain("is a folder");
});

test("neither reading, writing nor listing reaches IO's secrets", async () => {
  symlinkSync(paths.home, join(cwd, "door"));
  for (const path of [paths.token, "door/token", "../home/token", `/proc/self/root${paths.token}`]) {
    const read = await call({ operation: "read", path });
    expect(read.ok).toBe(false);
    expect(read.text).not.toContain("hush");
    expect((await call({ operation: "write", path, content: "mine" })).ok).toBe(false);
  }
  writeFileSync(join(paths.sessions, "private.jsonl"), "");
  const listing = await call({ operation: "list", path: paths.home, recursive: true });
  expect(listing.text).toContain("sessions/ (not opened)");
  expect(listing.text).not.toContain("private.jsonl");
  expect(readFileSync(paths.token, "utf8")).toBe("hush-hush");
});

test("a reviewer's file_ops cannot write, and does not claim to", async () => {
  const answer = await call({ operation: "write", path: "x", content: "y" }, false);
  expect(answer.text).toContain('operation: found "write"; allowed: one of "read", "list"');
  expect(existsSync(join(cwd, "x"))).toBe(false);
  expect(JSON.stringify(fileOps({ guard, write: false }).schema.shape)).not.toContain("content");
});

test("a path is judged once a call, when it is used, and what is refused counts as never done", async () => {
  const judged: string[] = [];
  const counting: PathGuard = {
    ...guard,
    reach: (path, how, from) => {
      judged.push(`${how} ${path}`);
      return guard.reach(path, how, from);
    },
  };
  const store = openStore(":memory:");
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  const policy = createPolicy({ guard: counting, keep: [] });
  const gate = createGate({ store, redactor: createRedactor(), log: silent, policy });
  const [bound] = gate.bind([fileOps({ guard: counting, write: true })], { cwd, within: cwd, actor: "swarm:engineer" });
  const signal = new AbortController().signal;
  for (const [callId, path] of ["a.txt", paths.token, "../outside.txt"].entries()) {
    const invocation = { callId: `c${callId}`, sessionId: "s", owner: "m", attempt: 1, signal, flush: async () => {} };
    await bound!.call({ operation: "write", path, content: "x" }, invocation);
  }
  expect(judged).toEqual(["write a.txt", `write ${paths.token}`, "write ../outside.txt"]);
  expect(gate.callsOf("m").map(({ state }) => state)).toEqual(["done", "refused", "refused"]);
  expect(existsSync(join(root, "outside.txt"))).toBe(false);
  store.close();
});
