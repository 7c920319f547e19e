import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ruleFor } from "../../src/tools/approvals/rules.ts";
import { createShow } from "../../src/tools/approvals/show.ts";
import { wantsOf } from "../../src/tools/approvals/wants.ts";
import { applyEdits } from "../../src/tools/edit-text.ts";
import { fileOps } from "../../src/tools/file-ops.ts";
import { unmarked } from "../support/data.ts";
import { createHands } from "../support/hands.ts";

const hands = createHands();
const edit = async (path: string, ...edits: { old: string; new: string; all?: boolean }[]) => {
  const { ok, text } = await hands.call({ operation: "edit", path, edits });
  return `${ok ? "" : "failed: "}${unmarked(text)}`;
};
const bytes = (path: string) => readFileSync(hands.at(path));
const text = (path: string) => readFileSync(hands.at(path), "utf8");

test("several edits are one step, and the answer is the difference", async () => {
  hands.write({ "a.ts": Array.from({ length: 40 }, (_, index) => `line ${index + 1}\n`).join("") });
  expect(
    await edit("a.ts", { old: "line 5\n", new: "line five\nand more\n" }, { old: "line 38", new: "line thirty-eight" }),
  ).toBe(
    [
      "Edited a.ts in 2 places.",
      ...[
        "@@ -2,7 +2,8 @@",
        " line 2",
        " line 3",
        " line 4",
        "-line 5",
        "+line five",
        "+and more",
        " line 6",
        " line 7",
        " line 8",
      ],
      ...["@@ -35,6 +36,6 @@", " line 35", " line 36", " line 37", "-line 38", "+line thirty-eight", " line 39", " line 40"],
    ].join("\n"),
  );
  // A later edit sees the result of an earlier one.
  expect(await edit("a.ts", { old: "line five", new: "line 5" }, { old: "line 5\nand more", new: "line 5" })).toContain(
    "-and more",
  );
  const before = bytes("a.ts");
  expect(await edit("a.ts", { old: "line 1\n", new: "x\n" }, { old: "line 99", new: "y" })).toMatch(
    /^failed: a\.ts was not edited\. edits\.1: old: is not in the file\./,
  );
  expect(bytes("a.ts")).toEqual(before);
  expect(await edit("a.ts", { old: "line ", new: "Zeile ", all: true })).toContain("Edited a.ts in 40 places.");
});

test("edits at both ends of a long file show what they changed and no more", async () => {
  hands.write({
    "long.txt": Array.from({ length: 60_000 }, (_, index) => `a line of a long file, number ${index + 1}\n`).join(""),
  });
  const answer = await edit(
    "long.txt",
    { old: "number 2\n", new: "number two\n" },
    { old: "number 59999\n", new: "last but one\n" },
  );
  expect(answer.split("\n")).toHaveLength(1 + 7 + 7);
  expect(await edit("long.txt", { old: "a line", new: "one line", all: true })).toMatch(
    /^Edited long\.txt in 60000 places\.[\s\S]*more lines\)$/,
  );
  expect(text("long.txt")).toMatch(/^one line of a long file, number 1\n/);
  expect(answer).toContain("+a line of a long file, last but one");
});

test.each<[what: string, before: string, edits: [string, string, boolean?][], after: string]>([
  ["CRLF", "one\r\ntwo\r\n", [["one\ntwo", "one\n1.5\ntwo"]], "one\r\n1.5\r\ntwo\r\n"],
  ["CRLF that the model spells out", "one\r\ntwo\r\n", [["one\r\n", "1\r\n\r\n"]], "1\r\n\r\ntwo\r\n"],
  ["CRLF with a lone CR", "a\rb\r\nc\r\r\n", [["c", "d\ne"]], "a\rb\r\nd\r\ne\r\r\n"],
  ["LF, whatever is put in", "one\ntwo\n", [["one", "1\r\n1"]], "1\n1\ntwo\n"],
  ["mixed ends, in a line of CRLF", "a\nb\r\nc\r\nd\n", [["b\nc\n", "x\ny\n"]], "a\nx\r\ny\r\nd\n"],
  ["mixed ends, in a line of LF", "a\nb\r\nc\nd\n", [["c\nd", "x\ny\nz"]], "a\nb\r\nx\ny\nz\n"],
  ["both kinds of ends in what it replaces", "a\nb\r\nc\nd\r\n", [["a\nb\nc\nd", "1\n2\n3\n4"]], "1\n2\r\n3\n4\r\n"],
  ["the end of the line that it is put into", "a\r\nb\r\nc\nd\n", [["b", "b\nb2"]], "a\r\nb\r\nb2\r\nc\nd\n"],
  ["the ends of each place", "a\nb\r\na\r\nb\n", [["a\nb", "x\ny\nz", true]], "x\ny\nz\r\nx\r\ny\r\nz\n"],
  ["mixed ends that it makes alike", "a\r\nb\nc\r\n", [["\r\n", "\n", true]], "a\nb\nc\n"],
  ["mixed ends that it makes CRLF", "a\r\nb\nc", [["b\n", "b\r\n"]], "a\r\nb\r\nc"],
  ["a byte order mark", "\uFEFFone\n", [["one", "two"]], "\uFEFFtwo\n"],
  ["a byte order mark, also one that the edit leaves out", "\uFEFFone\n", [["\uFEFFone", "two"]], "\uFEFFtwo\n"],
  ["a file without a byte order mark, whatever is put in", "one\n", [["one", "\uFEFFtwo"]], "two\n"],
  ["no line end at the end", "one\ntwo", [["two", "three"]], "one\nthree"],
  ["a line end taken away at the end", "one\ntwo\n", [["two\n", "two"]], "one\ntwo"],
  ["signs that a replacement could take for its own", "cost\n", [["cost", "$& $1 $$ \\n"]], "$& $1 $$ \\n\n"],
  ["letters beyond the first plane", "a 🎈 b\n", [["🎈", "🎉🎉"]], "a 🎉🎉 b\n"],
  ["everything", "x", [["x", ""]], ""],
  ["all of them, side by side", "aaaa", [["aa", "b", true]], "bb"],
])("an edit keeps %s", async (_, before, edits, after) => {
  hands.write({ "kept.txt": before });
  expect(await edit("kept.txt", ...edits.map(([old, fresh, all]) => ({ old, new: fresh, ...(all && { all }) })))).toContain(
    "Edited kept.txt",
  );
  expect(text("kept.txt")).toBe(after);
});

test("mode and links stay, nothing is left beside the file, and it is never there by half", async () => {
  mkdirSync(hands.at("mode"));
  hands.write({ "mode/run.sh": "echo one\n" });
  chmodSync(hands.at("mode/run.sh"), 0o751);
  symlinkSync("run.sh", hands.at("mode/link"));
  expect(await edit("mode/link", { old: "one", new: "two" })).toContain("+echo two");
  expect(text("mode/run.sh")).toBe("echo two\n");
  expect(statSync(hands.at("mode/run.sh")).mode & 0o7777).toBe(0o751);
  expect(readlinkSync(hands.at("mode/link"))).toBe("run.sh");
  expect(readdirSync(hands.at("mode")).sort()).toEqual(["link", "run.sh"]);
});

test("what cannot be edited is refused with a sentence, and nothing is changed", async () => {
  hands.write({
    "code.py": "def greet(name):\n    return 'hello ' + name\n\nx = 1\nx = 1\n",
    "a.bin": Buffer.from("one\0two"),
    "latin1.txt": Buffer.from([0x66, 0xfc, 0x72]),
    "late.txt": Buffer.concat([Buffer.alloc(100_000, "a"), Buffer.from([0xff])]),
    "huge.txt": "a".repeat(5_000_001),
    "overlap.txt": "na\nna\nna\nbanana\n",
  });
  execFileSync("mkfifo", [hands.at("a-pipe")]);
  symlinkSync("nowhere", hands.at("dangling"));
  symlinkSync(hands.paths.token, hands.at("key"));
  const before = text("code.py");
  const refused = async (path: string, old: string, fresh = "new") => {
    const answer = await edit(path, { old, new: fresh });
    expect(answer).toMatch(/^failed: /);
    return answer.slice("failed: ".length);
  };
  expect(await refused("code.py", "return 'hello' + name")).toBe(
    "code.py was not edited. old: is not in the file. Nearest:\n1\tdef greet(name):\n2\t    return 'hello ' + name\n3\t\n4\tx = 1",
  );
  expect(await refused("code.py", "def greet(name):\n  return 'hello ' + name")).toContain(
    "Nearest, perhaps with other spaces:\n1\tdef",
  );
  expect(await refused("code.py", "entirely different words here")).toContain("Read the file and copy the text as it is there.");
  expect(await refused("code.py", "x = 1")).toBe(
    "code.py was not edited. old: is there 2 times (lines 4, 5). Take in more of the text around it, or set all.\n3\t\n4\tx = 1\n5\tx = 1\n6\t",
  );
  expect(await refused("code.py", "X  = 1;")).toContain("Nearest:\n2\t");
  expect(await refused("code.py", "retrun")).toContain("2\t    return 'hello ' + name");
  expect(await refused("overlap.txt", "na\nna")).toBe(
    "overlap.txt was not edited. old: is there 2 times (lines 1, 2). Take in more of the text around it, or set all.\n1\tna\n2\tna\n3\tna",
  );
  expect(await refused("overlap.txt", "ana")).toContain("old: is there 2 times (line 4).");
  expect(await refused("code.py", "x = 1\n", "x = 1\n")).toContain("old and new are the same");
  expect(await refused("code.py", "")).toContain("old: is empty");
  hands.write({ "mixed.txt": "x\ny\r\nx\r\ny\n" });
  expect(await refused("mixed.txt", "x\ny")).toContain("old: is there 2 times (lines 1, 3)");
  expect(await edit("code.py", { old: "greet", new: "salute" }, { old: "salute", new: "greet" })).toBe(
    "failed: code.py was not edited. Together the edits change nothing.",
  );
  for (const path of ["a.bin", "latin1.txt", "late.txt"])
    expect(await refused(path, "a")).toContain(`${path} was not edited. It is a binary file, or a text that`);
  expect(await refused("huge.txt", "a")).toBe("huge.txt is too large and is not edited. Use shell for it.");
  expect(await refused(".", "a")).toContain("is a folder");
  expect(await refused("a-pipe", "a")).toContain("not a regular file");
  expect(await refused("missing.txt", "a")).toContain("missing.txt cannot be edited: it does not exist");
  expect(await refused("missing/x.txt", "a")).toContain("cannot be edited: it does not exist");
  expect(await refused("dangling", "a")).toContain("it does not exist");
  expect(await refused("key", "hush")).toContain("no tool may reach it");
  expect((await hands.call({ operation: "edit", path: "code.py" })).text).toBe("edits: is missing; edit needs it.");
  expect((await hands.call({ operation: "edit", path: "code.py", edits: [] })).text).toContain("edits");
  expect((await hands.call({ operation: "edit", path: "code.py", edits: [{ old: "x", new: "y", al: true }] })).ok).toBe(false);
  expect(
    (await hands.call({ operation: "edit", path: "code.py", edits: [{ old: "x", new: "y" }] }, { write: false })).text,
  ).toContain('found "edit"');
  expect(text("code.py")).toBe(before);
  expect(existsSync(hands.at("missing"))).toBe(false);
});

test("an edit does not reach out of the tree that an agent works in, also not by a link", async () => {
  mkdirSync(hands.at("tree"));
  hands.write({ "outside.txt": "one\n" });
  symlinkSync("../outside.txt", hands.at("tree/link"));
  const scope = { cwd: hands.at("tree"), within: hands.at("tree") };
  for (const path of ["link", "../outside.txt", hands.at("outside.txt")]) {
    const calls = [
      { operation: "edit", path, edits: [{ old: "one", new: "two" }] },
      ...(path === "link"
        ? []
        : [
            { operation: "delete", path },
            { operation: "move", path, to: "mine.txt" },
          ]),
      { operation: "move", path: "link", to: join("..", "away.txt") },
    ];
    for (const call of calls)
      expect([call, await hands.call(call, scope)]).toMatchObject([
        call,
        { ok: false, state: "refused", text: expect.stringContaining("lies outside") },
      ]);
  }
  expect(text("outside.txt")).toBe("one\n");
  expect(readdirSync(hands.at("tree"))).toEqual(["link"]);
});

test("a file that somebody changed since it was read keeps their change, and is edited only where it is as it was", async () => {
  hands.write({ "shared.txt": "mine\nmiddle\ntheirs\n" });
  await hands.call({ operation: "read", path: "shared.txt" });
  hands.write({ "shared.txt": "mine\nmiddle\ntheirs, changed\n" });
  expect(await edit("shared.txt", { old: "mine", new: "mine, edited" })).toContain("+mine, edited");
  expect(text("shared.txt")).toBe("mine, edited\nmiddle\ntheirs, changed\n");
  expect(await edit("shared.txt", { old: "theirs\n", new: "gone\n" })).toMatch(
    /old: is not in the file\. Nearest:[\s\S]*3\ttheirs, changed/,
  );
});

test("a file that somebody changes while it is being edited keeps their change, and the edit says so", async () => {
  const line = "a line of a file that takes a while to be edited\n";
  hands.write({ "busy.txt": `first\n${line.repeat(60_000)}` });
  let added = 0;
  let isDone = false;
  const edited = edit("busy.txt", { old: "first\n", new: "1st\n" }, { old: "a while", new: "long", all: true }).finally(() => {
    isDone = true;
  });
  // The person also writes while the edited text is written beside the file, until just before it would replace the file.
  while (!isDone) {
    appendFileSync(hands.at("busy.txt"), "by a person\n");
    added += 1;
    await new Promise(setImmediate);
  }
  expect(await edited).toBe("failed: busy.txt was changed by somebody else just now and was not edited. Read it and try again.");
  expect(text("busy.txt") === `first\n${line.repeat(60_000)}${"by a person\n".repeat(added)}`).toBe(true);
  expect(readdirSync(hands.project).filter((name) => name.includes("busy"))).toEqual(["busy.txt"]);
});

test("whatever is edited, the difference taken back gives the same bytes", async () => {
  let seed = 11;
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  const words = ["alpha", "beta", "gamma", "", "  indent", "{", "}", "ünï", "$1", "\t"];
  const some = (most: number) => Array.from({ length: 1 + random(most) }, () => words[random(words.length)]!);
  mkdirSync(hands.at("undo"));
  for (let round = 0; round < 40; round += 1) {
    const end = round % 2 === 0 ? "\n" : "\r\n";
    const lines = some(60);
    // Marks make each place unique.
    const places = [...new Set([random(lines.length), random(lines.length), random(lines.length)])];
    for (const place of places) lines[place] = `mark-${place}-`;
    const before = `${round % 3 === 0 ? "\uFEFF" : ""}top${end}${lines.join(end)}${end}bottom${end}`;
    hands.write({ "undo/f.txt": before });
    const edits = places.map((place) => ({ old: `mark-${place}-`, new: some(4).join("\n") }));
    const answer = await edit("undo/f.txt", ...edits);
    expect(answer).toContain("Edited undo/f.txt");
    const difference = answer.slice(answer.indexOf("\n") + 1);
    const patch = `--- a/f.txt\n+++ b/f.txt\n${difference}\n`;
    execFileSync("git", ["apply", "-R", "--whitespace=nowarn", "-"], { cwd: hands.at("undo"), input: patch });
    expect([round, text("undo/f.txt")]).toEqual([round, before]);
  }
  // In reverse: applies the edits with their texts swapped, the last one first.
  for (let round = 0; round < 200; round += 1) {
    const end = ["\n", "\r\n"][round % 2]!;
    const before = `<0>${end}${some(20).join(end)}<1>${end}${some(20).join(end)}<2>${round % 5 === 0 ? "" : end}`;
    const edits = [0, 1, 2].map((mark) => ({ old: `<${mark}>`, new: `[${mark}:${some(3).join("\n")}]` }));
    const there = applyEdits(before, edits);
    const back = applyEdits(
      "text" in there ? there.text : "",
      edits.toReversed().map(({ old, new: fresh }) => ({ old: fresh, new: old })),
    );
    expect(back).toEqual({ text: before, count: 3 });
  }
});

test("files, folders and links are moved to a free place, with the folders that it lacks", async () => {
  hands.write({ "m/a.txt": "a", "m/sub/b.txt": "b", "m/taken.txt": "t" });
  symlinkSync("a.txt", hands.at("m/link"));
  const move = async (path: string, to: string) => (await hands.call({ operation: "move", path, to })).text;
  expect(await move("m/link", "m/deep/er/link")).toBe("Moved m/link to m/deep/er/link.");
  expect(readlinkSync(hands.at("m/deep/er/link"))).toBe("a.txt");
  expect(await move("m/a.txt", "m/taken.txt")).toContain("m/taken.txt is already there");
  expect(await move("m/a.txt", "m/sub")).toContain("m/sub is already there");
  expect(await move("m/sub", "m/sub/inner")).toContain("cannot be moved into itself");
  expect(await move("m/none", "m/x")).toContain("m/none cannot be found: it does not exist");
  expect(await move("m/a.txt", join(hands.paths.home, "x"))).toContain("data folder");
  expect(await move(hands.paths.token, "m/token")).toContain("data folder");
  expect(await move(".", "../elsewhere")).toContain("is or holds");
  expect(await move("m/sub", "m/moved")).toBe("Moved m/sub to m/moved.");
  expect(text("m/moved/b.txt")).toBe("b");
  expect(readdirSync(hands.at("m")).sort()).toEqual(["a.txt", "deep", "moved", "taken.txt"]);
  expect((await hands.call({ operation: "move", path: "m/a.txt" })).text).toContain("to: is missing");
  expect((await hands.call({ operation: "read", path: "m/a.txt", to: "m/b" })).text).toContain("to: is a line number");
});

test("a file, a link or a whole folder is deleted, and never what somebody works or lives in", async () => {
  hands.write({ "d/a.txt": "a", "d/sub/deep/b.txt": "b", "d/kept.txt": "k", "d/.git/HEAD": "ref" });
  symlinkSync("kept.txt", hands.at("d/link"));
  symlinkSync("..", hands.at("d/sub/up"));
  const remove = async (path: string, scope = {}) => (await hands.call({ operation: "delete", path }, scope)).text;
  expect(await remove("d/a.txt")).toBe("Deleted d/a.txt.");
  expect(await remove("d/link")).toBe("Deleted d/link.");
  expect(await remove("d/sub/")).toBe("Deleted the folder d/sub/ with all that was in it.");
  expect(readdirSync(hands.at("d")).sort()).toEqual([".git", "kept.txt"]);
  expect(await remove("d/a.txt")).toContain("d/a.txt cannot be found: it does not exist");
  expect(await remove("d/.git")).toContain("a repository's own record");
  for (const path of [".", hands.project, hands.root, "/", join(hands.root, "home"), process.env.HOME ?? "/root"])
    expect([path, await remove(path)]).toEqual([
      path,
      expect.stringMatching(/is or holds|data folder|outside|no tool may reach/),
    ]);
  expect(await remove("../../project", { cwd: hands.at("d") })).toMatch(/is or holds/);
  expect(lstatSync(hands.at("d/kept.txt")).isFile()).toBe(true);
});

test("a person who is asked sees what an edit, a move or a delete would do, and a rule about one place does not allow another", async () => {
  hands.write({ "ask/a.txt": "one\n" });
  const show = createShow((each) => each);
  const wants = (args: Record<string, unknown>) =>
    wantsOf(
      fileOps({ guard: hands.guard, write: true }),
      args,
      { cwd: hands.project, actor: "x" },
      { guard: hands.guard, show },
    )!;
  const edits = [{ old: "one", new: "two" }];
  expect(await wants({ operation: "edit", path: "ask/a.txt", edits }).diff?.()).toBe("@@ -1,1 +1,1 @@\n-one\n+two");
  expect(await wants({ operation: "edit", path: "ask/a.txt", edits: [{ old: "three", new: "x" }] }).diff?.()).toContain(
    "would not be edited",
  );
  expect(wants({ operation: "delete", path: "ask/a.txt" }).past).toBeUndefined();
  expect(wants({ operation: "delete", path: "../x" }).past).toMatch(/^it would delete .*\/x, outside/);
  const out = wants({ operation: "move", path: "ask/a.txt", to: "../stolen.txt" });
  expect(out).toMatchObject({
    past: expect.stringMatching(/^it would move .*stolen\.txt, outside/),
    ruleReaches: false,
    patterns: {},
  });
  const rule = (match: string, then: "allow" | "deny") => [{ tool: "file_ops", match, then }];
  const move = wants({ operation: "move", path: "ask/a.txt", to: "other/a.txt" }).subject;
  expect(ruleFor(move, rule("ask/*", "allow"))).toBeUndefined();
  expect(ruleFor(move, rule("*", "allow"))).toBeDefined();
  expect(ruleFor(move, rule("other/*", "deny"))).toBeDefined();
  expect(ruleFor(wants({ operation: "delete", path: "ask" }).subject, rule("ask/*", "deny"))).toBeDefined();
});
