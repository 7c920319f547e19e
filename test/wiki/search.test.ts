import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, test } from "vitest";
import type { Wiki } from "../../src/wiki/wiki.ts";
import { makeWiki, until } from "../support/wiki.ts";

const VOCABULARY = [
  ..."the a of daemon wiki page search error handling session runtime squad pipeline review verdict release deploy token".split(
    " ",
  ),
  ..."ZÜRICH Straße ΟΔΟΣ οδός İstanbul naïve façade 東京 日本語 привет Ёлка 🦀 👩‍👩‍👧 e\u0301tude Ǆungla".split(" "),
  ...'"quoted" it\'s 100% under_score a\\b AND OR NOT NEAR( * ^ "" -- ; : C++ <tag> [x](y) foo.bar() $HOME \u0003'.split(" "),
];

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
}

function pageText(random: () => number, at: number): string {
  const words = Array.from({ length: 20 + Math.floor(random() * 120) }, () => {
    const word = VOCABULARY[Math.floor(random() * VOCABULARY.length)]!;
    return random() < 0.3 ? word.toUpperCase() : word;
  });
  return `# Page ${at}\n${words.join(random() < 0.9 ? " " : "\n")}${random() < 0.2 ? " xq" : ""}`;
}

/** Lower case, letter by letter, regardless of context. */
const caseless = (text: string) => [...text].map((letter) => (letter === "ς" ? "σ" : letter.toLowerCase())).join("");

/** Searches without an index, as the reference. */
function scanner(root: string): (query: string) => string[] {
  const names = readdirSync(join(root, "pages"), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".md"));
  const texts = names
    .sort()
    .map((name) => ({ path: `pages/${name}`, text: caseless(readFileSync(join(root, "pages", name), "utf8")) }));
  return (query) => texts.flatMap(({ path, text }) => (text.includes(caseless(query)) ? [path] : []));
}

async function textHits(wiki: Wiki, query: string): Promise<string[]> {
  const { items } = await wiki.search(query, { limit: 10_000 });
  const loose = items.findIndex((item) => item.match === "words");
  if (loose >= 0) expect(items.slice(loose).every((item) => item.match === "words")).toBe(true);
  return items.flatMap((item) => (item.match === "text" ? [item.path] : [])).sort();
}

test("200 queries find exactly what a plain scan finds, whether pages are indexed, changed or new", async () => {
  const random = seeded(7);
  const { wiki, root } = makeWiki((folder) => {
    mkdirSync(join(folder, "pages/general"), { recursive: true });
    for (let at = 0; at < 250; at += 1) writeFileSync(join(folder, `pages/general/p${at}.md`), pageText(random, at));
    writeFileSync(join(folder, "pages/general/nul.md"), "before\0after \0");
    writeFileSync(join(folder, "pages/general/empty.md"), "");
    writeFileSync(join(folder, "pages/general/sigma.md"), "# ΣΟΦΟΣΑ\nο ΣΟΦΟΣ, ΣΑΣ");
    writeFileSync(join(folder, "pages/general/bytes.md"), Buffer.from([0x23, 0x20, 0xff, 0xfe, 0x41]));
  });
  await wiki.settled();
  for (let at = 0; at < 40; at += 1) wiki.write(`projects/q${at}`, pageText(random, at));
  for (let at = 0; at < 20; at += 1) wiki.write(`general/p${at}`, pageText(random, at));
  wiki.delete("general/p30");

  const given = [
    '"',
    "'",
    "%",
    "_",
    "100%",
    "r_s",
    '"quoted"',
    '""',
    "a",
    "Z",
    "xq",
    "q",
    "é",
    "京",
    "🦀",
    "\ud83e",
    "\u0003",
    "\0",
    "e\0a",
  ];
  given.push(
    "σ",
    "ς",
    "ΟΔΟΣ",
    "ΣΟΦΟΣ",
    "σοφος",
    "σοφοσα",
    "ΦΟΣΑ",
    "ΑΣ",
    "ας",
    "οσ α",
    "ß",
    "SS",
    "İ",
    "i̇",
    "i",
    "zürich STRASSE",
    "AND",
    "NEAR(",
    "*",
    "\\",
    "\n",
    " ",
    "\t",
    "absent phrase",
    "--",
    "ǆ",
    "\ufffd",
  );
  const slices = Array.from({ length: 200 - given.length }, () => {
    const text = readFileSync(join(root, `pages/general/p${Math.floor(random() * 30)}.md`), "utf8");
    const from = Math.floor(random() * text.length);
    const slice = text.slice(from, from + 1 + Math.floor(random() ** 2 * 30)) || "e";
    return random() < 0.5 ? slice.toUpperCase() : slice;
  });
  const scan = scanner(root);
  let hits = 0;
  for (const query of [...given, ...slices]) {
    const expected = scan(query);
    hits += expected.length;
    expect(await textHits(wiki, query), JSON.stringify(query)).toEqual(expected);
  }
  expect(hits).toBeGreaterThan(3_000);
}, 120_000);

test("one letter, two letters and lone surrogates are found in the oldest of many pages, even at its end", async () => {
  const { wiki, root } = makeWiki((folder) => {
    mkdirSync(join(folder, "pages/general"), { recursive: true });
    for (let at = 0; at < 1_000; at += 1) {
      const file = join(folder, `pages/general/p${at}.md`);
      writeFileSync(
        file,
        `# ${at}\n${at % 100 === 7 ? "ends with ж" : at % 100 === 8 ? "has жq in it" : "plain"}${at % 250 === 9 ? " ýž" : ""}${at === 5 ? " 🦀" : ""}`,
      );
      utimesSync(file, at, at);
    }
  });
  await wiki.settled();
  const scan = scanner(root);
  for (const query of ["ж", "Ж", "жq", "ýž", "ž", "h ж", "q", "7", "#", "🦀", "\ud83e", "\udd80"])
    expect(await textHits(wiki, query), query).toEqual(scan(query));
});

test("a page with only the words of a query is found among thousands of newer pages, however short the words", async () => {
  const { wiki } = makeWiki((folder) => {
    mkdirSync(join(folder, "pages/general"), { recursive: true });
    const write = (at: number, text: string) => {
      const file = join(folder, `pages/general/p${at}.md`);
      writeFileSync(file, `# ${at}\n${text}`);
      utimesSync(file, at + 1, at + 1);
    };
    write(0, "ci before go, x before 京");
    write(1, "is it to be or no, we do as he is");
    for (let at = 2; at < 3_000; at += 1) write(at, ["it will go", "ci only", "be or it is", "a plain page"][at % 4]!);
    write(3_000, "here 京x is one");
  });
  await wiki.settled();
  const words = async (query: string, limit?: number) =>
    (await wiki.search(query, limit ? { limit } : {})).items.flatMap(({ path, match }) => (match === "words" ? [path] : []));
  for (const limit of [undefined, 1, 200]) {
    expect(await words("go ci", limit), "go ci").toEqual(["pages/general/p0.md"]);
    expect(await words("GO, Ci!", limit), "GO, Ci!").toEqual(["pages/general/p0.md"]);
    expect(await words("no it be as do he we to", limit), "eight words").toEqual(["pages/general/p1.md"]);
  }
  expect((await wiki.search("x 京")).items.map(({ path }) => path).sort()).toEqual([
    "pages/general/p0.md",
    "pages/general/p3000.md",
  ]);
  expect((await wiki.search("京x")).items.map(({ path, match }) => [path, match])).toEqual([["pages/general/p3000.md", "text"]]);
  expect(await words("go zz")).toEqual([]);
  const many = await wiki.search("is or", { limit: 50 });
  expect([many.items.length, many.more, many.items.every(({ match }) => match === "words")]).toEqual([50, true, true]);
});

test("title hits come first, then the best match, then pages with only the words, labelled as such", async () => {
  const { wiki } = makeWiki();
  wiki.write("general/once", "# Other\nSomewhere error handling is told.");
  wiki.write("general/often", "# Another\nerror handling, error handling and error handling.");
  wiki.write("general/title", "# Rust error handling patterns\n");
  wiki.write("general/exact", "# Error Handling\n");
  wiki.write("general/words", "# Third\nHandling of every error.");
  wiki.write("general/none", "# Fourth\nHandling of nothing.");
  for (const settled of [false, true]) {
    if (settled) await wiki.settled();
    const { items, more } = await wiki.search("error handling");
    expect(items.map(({ path, match }) => `${path} ${match}`)).toEqual([
      "pages/general/exact.md text",
      "pages/general/title.md text",
      "pages/general/often.md text",
      "pages/general/once.md text",
      "pages/general/words.md words",
    ]);
    expect(more).toBe(false);
    expect(items[0]).toMatchObject({ title: "Error Handling", tags: [] });
    expect(await wiki.search("error handling", { limit: 2 })).toMatchObject({
      items: [{ title: "Error Handling" }, {}],
      more: true,
    });
  }
});

test("the page with the words in its title comes first even among very many hits", async () => {
  const { wiki } = makeWiki((root) => {
    mkdirSync(join(root, "pages/general"), { recursive: true });
    writeFileSync(join(root, "pages/general/aaa.md"), "# Common words explained\n");
    for (let at = 0; at < 2_000; at += 1) writeFileSync(join(root, `pages/general/p${at}.md`), `# P${at}\nsome common words`);
  });
  await wiki.settled();
  const { items, more } = await wiki.search("common words");
  expect(items[0]!.path).toBe("pages/general/aaa.md");
  expect(items).toHaveLength(20);
  expect(more).toBe(true);
});

test("a snippet shows a hundred characters either side of the match", async () => {
  const { wiki } = makeWiki();
  wiki.write("general/a", `# T\n${"x".repeat(300)}NEEDLE${"y".repeat(300)}`);
  wiki.write("general/b", `İİİ${"İ".repeat(300)}Needle`);
  const { items } = await wiki.search("needle");
  expect(items.find((item) => item.path.endsWith("a.md"))!.snippet).toBe(`…${"x".repeat(100)}NEEDLE${"y".repeat(100)}…`);
  expect(items.find((item) => item.path.endsWith("b.md"))!.snippet).toBe(`…${"İ".repeat(100)}Needle`);
});

test("the next search sees pages created, edited, renamed or removed by hand", async () => {
  const { wiki, root, news } = makeWiki();
  const file = (name: string) => join(root, "pages", name);
  const find = async (query: string) => (await wiki.search(query)).items.map((item) => item.path);
  wiki.write("general/a", "# A\nalpha one");
  await wiki.settled();

  writeFileSync(file("general/hand.md"), "# Hand\nbravo two");
  expect(await find("bravo")).toEqual(["pages/general/hand.md"]);
  writeFileSync(file("general/a.md"), "# A\ncharlie 1");
  expect(await find("charlie")).toEqual(["pages/general/a.md"]);
  expect(await find("alpha")).toEqual([]);
  await wiki.settled();
  renameSync(file("general/hand.md"), file("general/renamed.md"));
  expect(await find("bravo")).toEqual(["pages/general/renamed.md"]);
  mkdirSync(file("general/deep/deeper"), { recursive: true });
  writeFileSync(file("general/deep/deeper/x.md"), "# X\ndelta");
  expect(await find("delta")).toEqual(["pages/general/deep/deeper/x.md"]);
  writeFileSync(file("general/deep/deeper/y.md"), "# Y\necho");
  expect(await find("echo")).toEqual(["pages/general/deep/deeper/y.md"]);
  await wiki.settled();
  renameSync(file("general/deep"), file("people/moved"));
  expect(await find("delta")).toEqual(["pages/people/moved/deeper/x.md"]);
  writeFileSync(file("people/moved/deeper/x.md"), "# X\nfoxtrot");
  expect(await find("foxtrot")).toEqual(["pages/people/moved/deeper/x.md"]);
  rmSync(file("people/moved"), { recursive: true });
  expect(await find("echo")).toEqual([]);
  rmSync(file("general/renamed.md"));
  expect(await find("bravo")).toEqual([]);
  expect((await wiki.list()).items.map((item) => item.path)).toEqual(["pages/general/a.md"]);
  await until("the removal was told", () =>
    news.some((item) => item.type === "page.deleted" && item.data.path === "pages/general/renamed.md"),
  );
  expect(news.filter(({ data }) => "path" in data && data.path === "pages/general/hand.md").map((item) => item.type)).toEqual([
    "page.written",
    "page.deleted",
  ]);
});

test("a change made while IO was stopped is found after it opens, even with the old mtime and length", async () => {
  const { wiki, root, reopen } = makeWiki();
  const file = join(root, "pages/general/a.md");
  wiki.write("general/a", "# A\nalpha");
  wiki.write("general/b", "# B\nbravo");
  const again = await reopen(() => {
    const { atime, mtime } = statSync(file);
    writeFileSync(`${file}.new`, "# A\nomega");
    utimesSync(`${file}.new`, atime, mtime);
    renameSync(`${file}.new`, file);
    rmSync(join(root, "pages/general/b.md"));
    writeFileSync(join(root, "pages/general/c.md"), "# C\ncharlie");
  });
  expect(await textHits(again, "omega")).toEqual(["pages/general/a.md"]);
  expect(await textHits(again, "alpha")).toEqual([]);
  expect(await textHits(again, "bravo")).toEqual([]);
  expect(await textHits(again, "charlie")).toEqual(["pages/general/c.md"]);
});

const DAMAGE: [string, (index: string) => void][] = [
  ["missing", (index) => rmSync(index)],
  ["garbage", (index) => writeFileSync(index, "this is no database at all, only words ".repeat(200))],
  ["empty", (index) => truncateSync(index, 0)],
  ["cut in half", (index) => truncateSync(index, Math.floor(statSync(index).size / 2))],
  [
    "zeroed after its first page",
    (index) =>
      writeFileSync(index, Buffer.concat([readFileSync(index).subarray(0, 4096), Buffer.alloc(statSync(index).size - 4096)])),
  ],
  [
    "a folder",
    (index) => {
      rmSync(index);
      mkdirSync(index);
    },
  ],
];

test.each(DAMAGE)("an index that is %s is rebuilt from the files at the next start", async (_name, harm) => {
  const { wiki, root, reopen } = makeWiki();
  for (let at = 0; at < 60; at += 1) wiki.write(`general/p${at}`, `# P${at}\nlimestone ${at} ${"filler text ".repeat(100)}`);
  await wiki.settled();
  const again = await reopen(() => harm(join(root, ".index.db")));
  expect(await textHits(again, "LIMEstone")).toHaveLength(60);
  await again.settled();
  expect(await textHits(again, "limestone 5")).toEqual(scanner(root)("limestone 5"));
});

test.each(DAMAGE)(
  "an index that becomes %s while open is rebuilt, and pages saved meanwhile are not lost",
  async (_name, harm) => {
    const { wiki, root } = makeWiki();
    for (let at = 0; at < 60; at += 1) wiki.write(`general/p${at}`, `# P${at}\nlimestone ${at} ${"filler text ".repeat(100)}`);
    await wiki.settled();
    for (const extra of ["-wal", "-shm"]) rmSync(join(root, `.index.db${extra}`), { force: true });
    harm(join(root, ".index.db"));
    wiki.write("general/late", "# Late\nlimestone too");
    expect(await textHits(wiki, "limestone")).toHaveLength(61);
    await wiki.settled();
    expect(await textHits(wiki, "limestone")).toHaveLength(61);
    await wiki.rebuild();
    expect(await textHits(wiki, "limestone")).toHaveLength(61);
  },
);

test("an index from an older version, with final sigmas, is rebuilt at the next start", async () => {
  const { wiki, root, reopen } = makeWiki();
  wiki.write("general/wise", "# Wise\nο ΣΟΦΟΣ λέει");
  await wiki.settled();
  const again = await reopen(() => {
    const db = new DatabaseSync(join(root, ".index.db"));
    const { id } = db.prepare("SELECT id FROM page").get() as { id: number };
    db.prepare("DELETE FROM tri WHERE rowid = ?").run(id);
    db.prepare("INSERT INTO tri (rowid, fold) VALUES (?, ?)").run(id, "# wise\nο σοφος λέει\npages/general/wise.md");
    db.exec("PRAGMA user_version = 1");
    db.close();
  });
  await again.settled();
  for (const query of ["ΣΟΦΟΣ", "σοφος λ", "οσ λέει"]) expect(await textHits(again, query)).toEqual(["pages/general/wise.md"]);
  const { items } = await again.search("οσ ΛΈΕΙ");
  expect(items[0]!.snippet).toBe("# Wise ο ΣΟΦΟΣ λέει");
});
