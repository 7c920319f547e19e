import { execFileSync } from "node:child_process";
import { chmodSync, linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isIgnored, withRules } from "../../src/tools/search/ignore-rules.ts";
import { requestedGlob } from "../../src/tools/search/path-glob.ts";
import { unmarked } from "../support/data.ts";
import { createHands } from "../support/hands.ts";
import { soon } from "../support/soon.ts";

const READER = { write: false };

async function search(hands: ReturnType<typeof createHands>, args: Record<string, unknown>): Promise<string> {
  const { ok, text } = await hands.call({ operation: "search", ...args }, READER);
  return `${ok ? "" : "refused: "}${unmarked(text)}`;
}
async function find(hands: ReturnType<typeof createHands>, args: Record<string, unknown>): Promise<string> {
  const { ok, text } = await hands.call({ operation: "find", ...args }, READER);
  return `${ok ? "" : "refused: "}${unmarked(text)}`;
}

test("a reviewer finds a text beyond the first part of a file, with its line, and lines around it", async () => {
  const hands = createHands();
  const lines = Array.from({ length: 2_000 }, (_, index) => `line ${index + 1}`);
  lines[1_500] = "here is the needle";
  hands.write({ "src/long.py": `${lines.join("\n")}\n`, "src/other.py": "a needle, too\r\n", "b.txt": "a[b\n" });
  expect(await search(hands, { query: "needle" })).toBe(
    "src/long.py\n1501:here is the needle\nsrc/other.py\n1:a needle, too\n[2 lines in 2 files.]",
  );
  expect(await search(hands, { query: "needle", path: "src", glob: "lo*.py", context: 1 })).toBe(
    "long.py\n1500-line 1500\n1501:here is the needle\n1502-line 1502\n[1 line in 1 file.]",
  );
  expect(await search(hands, { query: "needle", path: "src/other.py" })).toBe("other.py\n1:a needle, too\n[1 line in 1 file.]");
  expect(await search(hands, { query: "the needle$|too$", regex: true })).toContain("[2 lines in 2 files.]");
  expect(await search(hands, { query: "(?i)THE NEEDLE", regex: true })).toContain("[1 line in 1 file.]");
  for (const [query, lines] of [
    ["^here is", 1],
    ["needles?", 2],
    ["need{0}", 2],
    ["needlex*", 2],
    ["nothing|needle", 2],
    ["\\bneedle\\b", 2],
    ["line 2\\d*$", 1_111],
  ] as const)
    expect([query, await search(hands, { query, regex: true })]).toEqual([
      query,
      expect.stringMatching(lines > 2 ? /more lines/ : `\\[${lines} line`),
    ]);
  expect(await search(hands, { query: "a[b" })).toBe("b.txt\n1:a[b\n[1 line in 1 file.]");
  expect(await search(hands, { query: "a.b" })).toBe('[No line in . holds "a.b".]');
});

test("files are found by patterns for their paths, and folders with them", async () => {
  const hands = createHands();
  hands.write({ "src/a.ts": "", "src/deep/b.ts": "", "src/deep/b.tsx": "", "lib/a.js": "", "a\nb.md": "" });
  symlinkSync("src", hands.at("link"));
  expect(await find(hands, { glob: "*.ts" })).toBe("src/a.ts\nsrc/deep/b.ts\n[2 found.]");
  expect(await find(hands, { glob: "src/**/*.{ts,tsx}" })).toBe("src/a.ts\nsrc/deep/b.ts\nsrc/deep/b.tsx\n[3 found.]");
  expect(await find(hands, { glob: "src/*" })).toBe("src/a.ts\nsrc/deep/\n[2 found.]");
  expect(await find(hands, { glob: "b*", path: "src" })).toBe("deep/b.ts\ndeep/b.tsx\n[2 found.]");
  expect(await find(hands, { glob: "l*" })).toBe("lib/\nlink@\n[2 found.]");
  expect(await find(hands, { glob: "*.md" })).toBe('"a\\nb.md"\n[1 found.]');
  expect(await find(hands, { glob: hands.at("src/**/*.tsx") })).toBe("src/deep/b.tsx\n[1 found.]");
  expect(await find(hands, { glob: "/elsewhere/src/*" })).toContain("[Nothing in . fits");
  expect(await find(hands, { glob: "*.zip" })).toBe('[Nothing in . fits "*.zip".]');
});

test.each([
  ["../*", ".", 'path ".." and glob "*"'],
  ["../src/**/*.ts", "lib", 'path "src" and glob "**/*.ts"'],
  ["src/../../other.txt", ".", 'path ".." and glob "other.txt"'],
  ["{../a,b}/*.ts", ".", "that folder as path"],
])("a pattern that leaves its folder, %s in %s, is refused with what to give instead", async (glob, path, instead) => {
  const hands = createHands();
  hands.write({ "src/a.ts": "needle\n", "lib/b.ts": "needle\n" });
  const why = `refused: glob: "${glob}" leaves the folder. A pattern is relative to path and cannot leave it: for another folder give ${instead}.`;
  expect(await find(hands, { glob, path })).toBe(why);
  expect(await search(hands, { query: "needle", glob, path })).toBe(why);
});

test("a pattern that begins with another folder's whole path and fits nothing says how to look there", async () => {
  const hands = createHands();
  hands.write({ "src/a.ts": "" });
  expect(await find(hands, { glob: "/elsewhere/src/*.ts" })).toBe(
    '[Nothing in . fits "/elsewhere/src/*.ts". A pattern is relative to path and cannot leave it: for another folder give path "/elsewhere/src" and glob "*.ts".]',
  );
  expect(await find(hands, { glob: "/src/*.ts" })).toBe("src/a.ts\n[1 found.]");
});

test("everything in a tree that several threads share out is met once, in its order, and counted once", async () => {
  const hands = createHands();
  const folders = [
    ...Array.from({ length: 90 }, (_, at) => `wide/f${String(at).padStart(2, "0")}`),
    "one/way/down/to/a/deep/folder",
  ];
  hands.write({ ".git/HEAD": "", ".gitignore": "*.log\n", "at-the-top.txt": "needle", "top.log": "" });
  for (const folder of folders) hands.write({ [`${folder}/a.txt`]: "needle", [`${folder}/b.log`]: "needle" });
  const all = ["at-the-top.txt", ...folders.map((folder) => `${folder}/a.txt`)].sort();
  expect(await find(hands, { glob: "*.txt" })).toBe(`${all.join("\n")}\n[92 found. Not looked into: 92 ignored.]`);
  expect(await find(hands, { glob: "*", path: "wide/f07" })).toBe("a.txt\n[1 found. Not looked into: 1 ignored.]");
  const lines = await search(hands, { query: "needle" });
  expect(lines.match(/\S+\.txt/g)).toEqual(all);
  expect(lines).toContain("[92 lines in 92 files. Not looked into: 92 ignored.]");
});

test("what .gitignore names is left out and counted, unless it is asked for by its path", async () => {
  const hands = createHands();
  hands.write({
    ".gitignore": "dist/\n*.log\n!keep.log\n/only-here\n",
    "dist/out.js": "needle",
    "a.log": "needle",
    "keep.log": "needle",
    "only-here": "needle",
    "sub/only-here": "needle",
    "sub/.gitignore": "/hidden\n",
    "sub/hidden/x": "needle",
    "node_modules/x/index.js": "needle",
    ".git/config": "needle",
    ".github/workflows/ci.yml": "needle",
  });
  expect(await search(hands, { query: "needle" })).toBe(
    ".github/workflows/ci.yml\n1:needle\nkeep.log\n1:needle\nsub/only-here\n1:needle\n[3 lines in 3 files. Not looked into: 5 ignored.]",
  );
  // The ignore rules of parent folders also apply to a search that starts further down.
  expect(await search(hands, { query: "needle", path: "sub" })).toBe(
    "only-here\n1:needle\n[1 line in 1 file. Not looked into: 1 ignored.]",
  );
  expect(await search(hands, { query: "needle", path: "dist" })).toBe("out.js\n1:needle\n[1 line in 1 file.]");
  expect(await search(hands, { query: "needle", path: "node_modules/x" })).toContain("index.js\n1:needle");
  expect(await find(hands, { glob: "*.log" })).toBe("keep.log\n[1 found. Not looked into: 5 ignored.]");
});

test("what ignore files mean is what git takes them to mean", () => {
  const hands = createHands();
  execFileSync("git", ["init", "-q"], { cwd: hands.project });
  const names = ["a", "b", "ab", "a.b", "a*b", "[x]", "foo", "foo.txt", "a b", "!x", "#x", "build"];
  const pieces = [
    ...[
      "a",
      "b",
      "*",
      "?",
      "**",
      "/",
      "/",
      "[ab]",
      "[!a]",
      "[a-c]",
      "foo",
      ".txt",
      "\\*",
      "!",
      "#",
      " ",
      "\\ ",
      "\\!",
      "[",
      "build/",
    ],
  ];
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  const some = <T>(from: readonly T[]) => from[random(from.length)]!;
  const disagreements: unknown[] = [];
  for (let round = 0; round < 60; round += 1) {
    const rules = Array.from({ length: 1 + random(3) }, () => Array.from({ length: 1 + random(4) }, () => some(pieces)).join(""));
    const files = Array.from({ length: 40 }, () => Array.from({ length: 1 + random(3) }, () => some(names)).join("/"));
    writeFileSync(hands.at(".gitignore"), `${rules.join("\n")}\n`);
    const { stdout } = gitIgnores(hands.project, files);
    const theirs = new Set(stdout.split("\0"));
    const own = withRules(undefined, 0, `${rules.join("\n")}\n`);
    for (const file of files) {
      const parts = file.split("/");
      // If a folder is ignored, so is everything in it.
      const isOurs = parts.some((_, at) => isIgnored(own, parts.slice(0, at + 1), at < parts.length - 1));
      if (isOurs !== theirs.has(file)) disagreements.push({ rules, file, git: theirs.has(file) });
    }
  }
  expect(disagreements).toEqual([]);
});

function gitIgnores(cwd: string, files: readonly string[]): { stdout: string } {
  try {
    const args = ["check-ignore", "--no-index", "-z", "--stdin"];
    return {
      stdout: execFileSync("git", args, { cwd, input: files.join("\0"), encoding: "utf8", stdio: ["pipe", "pipe", "pipe"] }),
    };
  } catch {
    // git exits with 1 if no file is ignored.
    return { stdout: "" };
  }
}

test("a pattern made to take for ever does not", () => {
  const began = performance.now();
  const fits = requestedGlob(`${"*a".repeat(200)}b`);
  expect(fits(["a".repeat(250)])).toBe(false);
  expect(requestedGlob(`${"**/a/".repeat(80)}b`)(Array.from({ length: 90 }, () => "a"))).toBe(false);
  expect(requestedGlob("{a,b}".repeat(30))(["x"])).toBe(false);
  expect(performance.now() - began).toBeLessThan(soon(2_000));
});

test("an expression that takes for ever is stopped, by its time or by whoever asked, and nothing else waits for it", async () => {
  const hands = createHands();
  hands.write({ "evil.txt": `${"a".repeat(60)}!\n` });
  const evil = { operation: "search", query: "^(a+)+$", regex: true };
  const cancel = new AbortController();
  const cancelled = hands.call(evil, { ...READER, searchMs: 2_000, signal: cancel.signal });
  let turns = 0;
  const counting = setInterval(() => {
    turns += 1;
    if (turns === 50) cancel.abort(new Error("the turn was cancelled"));
  }, 10);
  expect(await cancelled).toMatchObject({ ok: false, text: expect.stringContaining("was stopped before it finished") });
  const { ok, text } = await hands.call(evil, { ...READER, searchMs: 2_000 });
  clearInterval(counting);
  expect({ ok, text }).toMatchObject({ ok: false, text: expect.stringMatching(/did not end within 2.4 s.*simpler expression/) });
  expect(turns).toBeGreaterThan(55);
  expect(await search(hands, { query: "(", regex: true })).toMatch(
    /^refused: query: is no regular expression: .*Unterminated group/,
  );
});

test("nothing is found in IO's secrets, through links, in pipes, or in what cannot be read; the answer counts the rest", async () => {
  const hands = createHands();
  hands.write({
    "plain.txt": "hush-hush needle\n",
    "a.bin": Buffer.from("needle\0needle"),
    "big.txt": `${"x".repeat(10_000_001)}needle`,
    "closed/inside.txt": "needle",
  });
  writeFileSync(join(hands.paths.sessions, "log.jsonl"), "hush-hush needle\n");
  linkSync(hands.paths.token, hands.at("hard-link"));
  symlinkSync(hands.paths.home, hands.at("door"));
  symlinkSync(hands.paths.token, hands.at("key"));
  mkdirSync(join(hands.root, "elsewhere"));
  writeFileSync(join(hands.root, "elsewhere", "x.txt"), "needle");
  symlinkSync("../elsewhere", hands.at("out"));
  execFileSync("mkfifo", [hands.at("pipe")]);
  chmodSync(hands.at("closed"), 0o000);
  const isRoot = process.getuid?.() === 0;
  const shown = await search(hands, { query: "needle" });
  chmodSync(hands.at("closed"), 0o755);
  expect(shown).toBe(
    isRoot
      ? "closed/inside.txt\n1:needle\nplain.txt\n1:hush-hush needle\n[2 lines in 2 files. Not looked into: 1 binary, 1 over 10 MB.]"
      : "plain.txt\n1:hush-hush needle\n[1 line in 1 file. Not looked into: 1 binary, 1 over 10 MB, 1 unreadable.]",
  );
  // A search from above the data folder finds neither texts nor names in protected folders.
  expect(await search(hands, { query: "hush", path: hands.root, glob: "home/**" })).toMatch(/^\[No line in/);
  expect(await search(hands, { query: "hush-hush", path: hands.root })).toMatch(
    /^project\/plain.txt\n1:hush-hush needle\n\[1 line in 1 file/,
  );
  expect(await find(hands, { glob: "log.jsonl", path: hands.root })).toMatch(/^\[Nothing/);
  for (const path of [hands.paths.token, hands.paths.sessions, "door/token", "key"])
    expect(await search(hands, { query: "hush", path })).toMatch(/^refused: .*no tool may reach/);
});

test("what a rule of the user's keeps from being read is not found either", async () => {
  const hands = createHands();
  hands.write({ "open.txt": "needle", "private/salary.txt": "needle" });
  const whyNot = ({ operation, path }: Record<string, unknown>) =>
    operation === "read" && String(path).startsWith(hands.at("private")) ? "a rule" : undefined;
  const { text } = await hands.call({ operation: "search", query: "needle" }, { ...READER, whyNot });
  expect(unmarked(text)).toBe("open.txt\n1:needle\n[1 line in 1 file. Not looked into: 1 kept back by a rule.]");
});

test("answers are bounded: by lines, in one file, in a long line, by paths", async () => {
  const hands = createHands();
  hands.write({ "many.txt": "needle\n".repeat(500), "long.txt": `${"x".repeat(5_000)}needle${"y".repeat(5_000)}` });
  for (let index = 0; index < 600; index += 1) hands.write({ [`f/${String(index).padStart(3, "0")}.txt`]: "a straw\n" });
  const many = await search(hands, { query: "needle", path: "many.txt" });
  expect(many.split("\n")).toHaveLength(23);
  expect(many).toContain("… 480 more lines in this file");
  expect(await search(hands, { query: "needle", path: "long.txt" })).toMatch(/^long.txt\n1:…x{80}needley+…\n/);
  const straws = await search(hands, { query: "straw" });
  expect(straws).toContain("[Only the first 100 lines are shown; narrow the search");
  expect(straws).toMatch(/^f\/000\.txt\n1:a straw\nf\/001\.txt\n/);
  expect(straws).toContain("f/099.txt");
  const paths = await find(hands, { glob: "*.txt" });
  expect(paths.split("\n")).toHaveLength(501);
  expect(paths).toContain("[Only the first 500 are shown;");
});

test("what is missing is said in a sentence", async () => {
  const hands = createHands();
  hands.write({ "a.txt": "" });
  expect(await search(hands, {})).toBe("refused: query: is missing; search needs it.");
  expect(await find(hands, {})).toBe("refused: glob: is missing; find needs it.");
  expect(await search(hands, { query: "a\nb" })).toContain("line by line");
  expect(await search(hands, { query: "x", path: "nowhere" })).toBe(
    "refused: nowhere cannot be searched: it does not exist. List its folder to see what is there.",
  );
  expect(await find(hands, { glob: "x", path: "a.txt" })).toContain("a.txt cannot be searched");
  expect((await hands.call({ operation: "read" }, READER)).text).toBe("path: is missing; read needs it.");
});
