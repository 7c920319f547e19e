import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { UserError } from "../../src/lib/errors.ts";
import { estimateTokens } from "../../src/lib/estimate-tokens.ts";
import { makeWiki, until } from "../support/wiki.ts";

test.each(["pipe", "link"])(
  "a %s in place of the log, the list, a version or a source neither blocks nor is followed",
  async (what) => {
    const { wiki, root } = makeWiki();
    const outside = join(dirname(root), `outside-${what}`);
    writeFileSync(outside, "secret");
    const put = (path: string) => (what === "pipe" ? execFileSync("mkfifo", [path]) : symlinkSync(outside, path));
    wiki.write("general/a", "# one");
    wiki.write("general/a", "# two");
    const { version } = wiki.history("general/a")[0]!;
    for (const path of ["log.md", "index.md", `.versions/general/a.md/${version}`, "sources/raw.txt"]) {
      rmSync(join(root, path), { force: true });
      put(join(root, path));
    }
    wiki.write("general/a", "# three");
    wiki.write("general/b", "# four");
    expect(wiki.read("general/a").content).toBe("# three");
    expect(() => wiki.readVersion("general/a", version)).toThrow(/has no version/);
    expect(() => wiki.sources.read("raw.txt")).toThrow(/no source/);
    expect(wiki.sources.list()).toEqual([]);
    await until("the list is a file again", () => lstatSync(join(root, "index.md")).isFile());
    expect(readFileSync(join(root, "index.md"), "utf8")).toContain("general/b.md");
    expect(readFileSync(outside, "utf8")).toBe("secret");
  },
);

test("a page's time matches the journal's clock to the millisecond", () => {
  const { wiki } = makeWiki();
  for (let round = 0; round < 100; round += 1) {
    const before = Date.now();
    const { updatedAt } = wiki.write("general/a", `# round ${round}`);
    expect(Date.parse(updatedAt)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(updatedAt)).toBeLessThanOrEqual(Date.now());
  }
});

test("a page is saved under the given name, with title and tags from its text", () => {
  const { wiki, root, news } = makeWiki();
  const page = wiki.write("general/rust-patterns", "# Rust Patterns\nTags: rust, #Programming\n\nUse `thiserror`.\n");
  expect(page).toMatchObject({
    path: "pages/general/rust-patterns.md",
    title: "Rust Patterns",
    tags: ["rust", "Programming"],
    created: true,
  });
  expect(readFileSync(join(root, "pages/general/rust-patterns.md"), "utf8")).toContain("thiserror");
  expect(wiki.read("pages/general/rust-patterns.md").content).toContain("thiserror");
  expect(wiki.write("general/plain.md", "```\n# not a title\n```\nwords").title).toBe("plain");
  expect(news).toEqual([
    { type: "page.written", data: { path: "pages/general/rust-patterns.md", title: "Rust Patterns" } },
    { type: "page.written", data: { path: "pages/general/plain.md", title: "plain" } },
  ]);
  for (const category of ["preferences", "projects", "people", "general"])
    expect(statSync(join(root, "pages", category)).isDirectory()).toBe(true);
});

test.each([
  ["../outside"],
  ["general/../../outside"],
  ["pages/../outside"],
  ["/etc/passwd.md"],
  ["~/notes"],
  ["C:/notes"],
  ["general/%2e%2e/%2e%2e/outside"],
  ["general%2f..%2foutside"],
  ["general/%252e%252e/x"],
  ["general/nul\0.md"],
  ["general\\..\\outside"],
  ["general//double"],
  ["general/"],
  [""],
  ["pages/"],
  ["."],
  ["general/.hidden"],
  [".git/config.md"],
  ["general/line\nbreak"],
  ["general/turned\u202egnp"],
  ["general/turned\u061cback"],
  ["general/zero\u200bwidth"],
  ["general/soft\u00adhyphen"],
  ["general/joined\u2060words"],
  ["general/tagged\u{e0041}"],
  ["general/notes.txt"],
  ["general/config.json"],
  ["general/ space "],
  [`general/${"x".repeat(253)}`],
  [`${"folder/".repeat(150)}x`],
])("the path %j is refused with a sentence that helps, and nothing is written", (path) => {
  const { wiki, root } = makeWiki();
  for (const attempt of [
    () => wiki.write(path, "text"),
    () => wiki.read(path),
    () => wiki.delete(path),
    () => wiki.history(path),
  ]) {
    expect(attempt).toThrow(UserError);
    expect(attempt).toThrow(/is no page path: .+ Pages are named like/);
  }
  expect(readdirSync(dirname(root))).toEqual(["wiki"]);
  expect(readdirSync(join(root, "pages")).sort()).toEqual(["general", "people", "preferences", "projects"]);
});

test("a page name may have 255 bytes and letters of many scripts", () => {
  const { wiki } = makeWiki();
  const long = `general/${"ü".repeat(126)}.md`;
  wiki.write(long, "# Long\n");
  wiki.write("general/v1.2 – 日本語 & more (50%)", "# Odd\n");
  expect(wiki.read(long).title).toBe("Long");
  expect(wiki.read("general/v1.2 – 日本語 & more (50%)").title).toBe("Odd");
});

test("links out of the wiki are refused for reading and writing, and are not found by search", async () => {
  const { wiki, root } = makeWiki();
  const outside = join(dirname(root), "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "secret.md"), "# Secret\nmarzipan");
  symlinkSync(outside, join(root, "pages/general/linked"));
  symlinkSync(join(outside, "secret.md"), join(root, "pages/general/secret.md"));
  symlinkSync(join(outside, "absent.md"), join(root, "pages/general/dangling.md"));
  symlinkSync("..", join(root, "pages/up"));
  for (const path of [
    "general/linked/secret",
    "general/secret",
    "general/linked/new",
    "general/dangling",
    "up/log",
    "up/sources/x",
  ]) {
    expect(() => wiki.read(path)).toThrow(/leads/);
    expect(() => wiki.write(path, "changed")).toThrow(/leads/);
    expect(() => wiki.delete(path)).toThrow(/leads/);
  }
  expect(readdirSync(outside)).toEqual(["secret.md"]);
  expect(readFileSync(join(outside, "secret.md"), "utf8")).toContain("marzipan");
  expect((await wiki.search("marzipan")).items).toEqual([]);
  expect((await wiki.list()).total).toBe(0);
});

test("a page of ten megabytes is saved and found, a longer one is refused", async () => {
  const { wiki, root } = makeWiki();
  const text = `# Big\n${"lorem ipsum ".repeat(833_000)}`.slice(0, 9_999_980);
  wiki.write("general/big", `${text} Needle!`);
  expect((await wiki.search("needle!")).items.map((hit) => hit.path)).toEqual(["pages/general/big.md"]);
  await wiki.settled();
  expect((await wiki.search("needle!")).items.map((hit) => hit.path)).toEqual(["pages/general/big.md"]);
  expect(() => wiki.write("general/bigger", "x".repeat(10_000_001))).toThrow(/at most 10000000/);
  expect(existsSync(join(root, "pages/general/bigger.md"))).toBe(false);
});

test("a page's previous text is kept, can be read and can be restored", async () => {
  const { wiki, root, news } = makeWiki();
  wiki.write("people/ada", "# Ada\nfirst");
  wiki.write("people/ada", "# Ada\nsecond");
  wiki.write("people/ada", "# Ada\nthird");
  wiki.write("people/ada", "# Ada\nthird");
  const history = wiki.history("people/ada");
  expect(history.map(({ version }) => wiki.readVersion("people/ada", version))).toEqual(["# Ada\nsecond", "# Ada\nfirst"]);
  wiki.restore("people/ada", history[1]!.version);
  expect(wiki.read("people/ada").content).toBe("# Ada\nfirst");

  await wiki.settled();
  wiki.delete("people/ada");
  expect(news.at(-1)).toEqual({ type: "page.deleted", data: { path: "pages/people/ada.md", title: "Ada" } });
  expect(() => wiki.read("people/ada")).toThrow(/There is no page/);
  const last = wiki.history("people/ada")[0]!;
  expect(wiki.readVersion("people/ada", last.version)).toBe("# Ada\nfirst");
  wiki.restore("people/ada", last.version);
  expect(wiki.read("people/ada").content).toBe("# Ada\nfirst");
  expect(() => wiki.readVersion("people/ada", "../../../log.md")).toThrow(/has no version/);
  expect(() => wiki.history("people/nobody")).toThrow(/There is no page/);
  expect(existsSync(join(root, "pages/people/ada.md"))).toBe(true);
});

test("IO's text survives an editor that overwrites the file in place", async () => {
  const { wiki, root } = makeWiki();
  wiki.write("people/ada", "# Ada\nby IO");
  await wiki.settled();
  writeFileSync(join(root, "pages/people/ada.md"), "# Ada\nby hand");
  await wiki.settled();
  const texts = wiki.history("people/ada").map(({ version }) => wiki.readVersion("people/ada", version));
  expect(texts).toEqual(["# Ada\nby IO"]);
});

test("the last fifty versions of a page are kept", async () => {
  const { wiki, root } = makeWiki();
  const write = (at: number) => wiki.write("general/often", `# Often\n${at}`);
  for (let at = 0; at <= 68; at += 1) write(at);
  // The file system's clock is coarse: writes in the same tick have no order.
  const writtenAt = (path: string) => statSync(join(root, path)).mtimeMs;
  const probe = "probe";
  await until("a later moment", () => {
    writeFileSync(join(root, probe), "");
    return writtenAt(probe) > writtenAt("pages/general/often.md");
  });
  rmSync(join(root, probe));
  for (const at of [69, 70]) write(at);
  await wiki.settled();
  const history = wiki.history("general/often");
  expect(history).toHaveLength(50);
  expect(wiki.readVersion("general/often", history[0]!.version)).toBe("# Often\n69");
});

test("index.md lists every page after a change, and log.md is append-only", async () => {
  const { wiki, root, reopen } = makeWiki();
  wiki.write("projects/web", "# The [Web] App\nTags: vue\n");
  wiki.write("general/gone", "# Gone\n");
  const before = readFileSync(join(root, "log.md"), "utf8");
  await until(
    "index.md lists the page",
    () => existsSync(join(root, "index.md")) && readFileSync(join(root, "index.md"), "utf8").includes("Gone"),
  );
  wiki.delete("general/gone");
  await reopen();
  const index = readFileSync(join(root, "index.md"), "utf8");
  expect(index).toContain("- [The \\[Web\\] App](<pages/projects/web.md>) (vue)");
  expect(index).not.toContain("Gone");
  const log = readFileSync(join(root, "log.md"), "utf8");
  expect(log.startsWith(before)).toBe(true);
  expect(log).toMatch(
    /created pages\/projects\/web\.md .*\n.*created pages\/general\/gone\.md .*\n.*deleted pages\/general\/gone\.md\n$/,
  );
});

test("a source is stored under a safe name and read by either name", () => {
  const { wiki, root } = makeWiki();
  const { name } = wiki.sources.write("../Meeting notes (May)!.txt", "raw");
  expect(name).toBe("Meeting-notes-May-.txt");
  expect(wiki.sources.read("../Meeting notes (May)!.txt").content).toBe("raw");
  expect(wiki.sources.read(name)).toMatchObject({ name, bytes: 3, content: "raw" });
  expect(wiki.sources.list().map((source) => source.name)).toEqual([name]);
  expect(readdirSync(join(root, "sources"))).toEqual([name]);
  expect(() => wiki.sources.read("../../config.json")).toThrow(/no source called/);
  expect(() => wiki.sources.write("../..", "x")).toThrow(/no name/);
  symlinkSync("/etc/hostname", join(root, "sources/host.txt"));
  expect(() => wiki.sources.read("host.txt")).toThrow(/no source called/);
});

test("a summary of many pages stays within its tokens, most used and newest first", async () => {
  const { wiki, reopen } = makeWiki((root) => {
    mkdirSync(join(root, "pages/general"), { recursive: true });
    for (let at = 0; at < 3_000; at += 1)
      writeFileSync(join(root, `pages/general/p${at}.md`), `# Subject ${at}\nTags: läuft, 日本\n\nWords of page ${at}.`);
  });
  for (let at = 0; at < 40; at += 1) wiki.read("general/p7");
  const summary = await wiki.summary();
  expect(estimateTokens(summary)).toBeLessThanOrEqual(1_500);
  expect(summary.length / 4).toBeLessThanOrEqual(1_500);
  expect(summary).toMatch(/^The wiki has 3000 pages; these \d+ were/);
  expect(summary.split("\n")[1]).toContain("general/p7: Subject 7");
  expect(estimateTokens(await wiki.summary(200))).toBeLessThanOrEqual(200);
  expect(estimateTokens(await wiki.summary(1_000_000))).toBeLessThanOrEqual(1_500);

  const again = await reopen();
  again.write("people/new", "# Newest of all\n");
  expect((await again.summary()).split("\n").slice(1, 4).join()).toContain("Newest of all");
});

test("a wiki without pages has an empty summary", async () => {
  expect(await makeWiki().wiki.summary()).toBe("");
});
