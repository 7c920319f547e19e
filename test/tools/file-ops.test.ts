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
import { ensureHome, type Paths, pathsOf } from "../../src/home/paths.ts";
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

/** Calls the tool through the gate, as the model does. */
async function call(args: Record<string, unknown>, write = true, place = cwd): Promise<{ ok: boolean; text: string }> {
  const store = openStore(":memory:");
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  const gate = createGate({
    store,
    redactor: createRedactor(),
    log: silent,
    policy: createPolicy({ guard, keep: [paths.home] }),
  });
  const [bound] = gate.bind([fileOps({ guard, write })], { cwd: place, actor: "orchestrator" });
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
  expect(text).toMatch(/^--- data ([0-9a-f]{12})\n1\tgrüße\n--- end \1\n\[Lines 1 to 1 of 1 in a\/b\/c\.txt\.\]$/);
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

test("every line of a long file can be read, a part at a time", async () => {
  const lines = Array.from({ length: 3_000 }, (_, index) => `line ${index + 1}: ${"ä".repeat(index % 50)}`);
  writeFileSync(join(cwd, "long.txt"), `${lines.join("\n")}\n`);
  const seen: string[] = [];
  for (let from: number | undefined = 1; from !== undefined; ) {
    const text = unmarked((await call({ operation: "read", path: "long.txt", from }, false)).text);
    const shown = text.split("\n").slice(0, -1);
    expect(text.split("\n").at(-1)).toContain(`Lines ${from} to ${from + shown.length - 1} of 3000 in long.txt.`);
    expect(shown.join("\n").length).toBeLessThan(15_000);
    seen.push(...shown);
    const next: string | undefined = /Read on with from: (\d+)\./.exec(text)?.[1];
    from = next === undefined ? undefined : Number(next);
  }
  expect(seen).toEqual(lines.map((line, index) => `${index + 1}\t${line}`));
  expect(unmarked((await call({ operation: "read", path: "long.txt", from: 2_999, to: 2_999 })).text)).toBe(
    `2999\t${lines[2_998]}\n[Lines 2999 to 2999 of 3000 in long.txt.]`,
  );
  expect(await call({ operation: "read", path: "long.txt", from: 3_001 })).toMatchObject({
    ok: false,
    text: expect.stringContaining("long.txt has 3000 lines; there is no line 3001"),
  });
  expect((await call({ operation: "read", path: "long.txt", from: 2, to: 1 })).ok).toBe(false);
  expect((await call({ operation: "read", path: "long.txt", from: 0 })).ok).toBe(false);
});

test("a line that is too long is cut with a note, and what follows it can be read", async () => {
  writeFileSync(join(cwd, "long"), `short\n${"ä".repeat(50_000)}\nlast`);
  expect(unmarked((await call({ operation: "read", path: "long" })).text)).toBe(
    "1\tshort\n[Lines 1 to 1 of 3 in long. Read on with from: 2.]",
  );
  expect(unmarked((await call({ operation: "read", path: "long", from: 2 })).text)).toMatch(
    /^2\tä{8000}\n\[Lines 2 to 2 of 3 in long\. Line 2 is longer than the 8000 characters shown\. Read on with from: 3\.\]$/,
  );
  expect(unmarked((await call({ operation: "read", path: "long", from: 3 })).text)).toBe("3\tlast\n[Lines 3 to 3 of 3 in long.]");
});

test("a binary file is named as such, an empty one as empty", async () => {
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

test("a worktree in the data folder is written by the agent that stands in it and by nobody else", async () => {
  const worktree = (run: string, name = "stream-1") => join(paths.runs, run, "worktrees", name);
  const places = [
    worktree("own"),
    worktree("own", "stream-2"),
    worktree("other"),
    join(paths.home, "worktrees", "x"),
    join(paths.runs, "own"),
  ];
  for (const folder of places) mkdirSync(folder, { recursive: true });
  symlinkSync(worktree("other"), join(worktree("own"), "link"));
  const write = (path: string, place: string) => call({ operation: "write", path, content: "x" }, true, place);
  expect(await write("src/a.txt", worktree("own"))).toMatchObject({ ok: true });
  expect(await write("../src/b.txt", join(worktree("own"), "src"))).toMatchObject({ ok: true });
  const refused = [
    ...[join(worktree("own", "stream-2"), "x"), join(worktree("other"), "x"), "link/x", "../x", "../../x", "../../../other/x"],
    ...[
      join(paths.home, "worktrees", "x", "y"),
      join(paths.home, "worktrees", "z"),
      join(paths.runs, "worktrees", "x"),
      paths.runs,
    ],
  ];
  for (const path of refused)
    for (const place of [worktree("own"), cwd, paths.home]) {
      if (place !== worktree("own") && !path.startsWith("/")) continue;
      const answer = await write(path, place);
      expect([path, place, answer]).toEqual([
        path,
        place,
        { ok: false, state: "refused", text: expect.stringContaining("lies in the data folder") },
      ]);
    }
  expect(readdirSync(worktree("other"))).toEqual([]);
  expect(readdirSync(join(paths.home, "worktrees"))).toEqual(["x"]);
});

test("the copy that a backup is made from, variables of the service, the ticket of io web and what a restore leaves are not read", async () => {
  const files = [
    join(paths.scratch, "backup-1-ab", "token"),
    join(paths.home, "service.env"),
    join(paths.home, "open-page.html"),
    join(paths.home, ".restore", "7", "token"),
    join(`${paths.home}.before-20260101T000000`, "token"),
    join(`${paths.home}.restoring-1`, "config.json"),
    join(`${paths.home}.restored-1`, "io.db"),
  ];
  for (const file of files) {
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, "hush-hush");
  }
  symlinkSync(`${paths.home}.before-20260101T000000`, join(cwd, "link"));
  for (const path of [...files, "link/token"]) {
    for (const args of [
      { operation: "read", path },
      { operation: "list", path: join(path, "..") },
      { operation: "write", path, content: "x" },
    ]) {
      if (args.operation === "list" && /service\.env$|open-page|^link/.test(path)) continue;
      const answer = await call(args);
      expect([args, answer]).toEqual([
        args,
        { ok: false, state: "refused", text: expect.stringMatching(/secrets or records|no tool may reach/) },
      ]);
    }
  }
  // A name that only starts with the same letters is not protected.
  writeFileSync(`${paths.home}.beforehand`, "plain");
  expect(await call({ operation: "read", path: `${paths.home}.beforehand` })).toMatchObject({ ok: true });
});
