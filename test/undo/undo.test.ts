import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readlinkSync, renameSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createUndoBench, type UndoBench } from "../support/undo.ts";

const start = (options?: { isRepository?: boolean }) => createUndoBench(options, onTestFinished);

/** A repository with files in every state that git knows. */
function everyState(bench: UndoBench): void {
  bench.commit({
    ...{ "clean.txt": "clean\n", "staged.txt": "old\n", "unstaged.txt": "old\n", "both.txt": "old\n", "deleted.txt": "gone\n" },
    ...{
      "renamed.txt": "a file\nthat is\nrenamed\n",
      "mode.sh": "#!/bin/sh\n",
      "sub/deep.txt": "deep\n",
      ".gitignore": "ignored/\n*.log\n",
    },
  });
  bench.write({ "staged.txt": "staged\n", "both.txt": "staged\n" });
  bench.git("add", "staged.txt", "both.txt");
  bench.write({
    "unstaged.txt": "unstaged\n",
    "both.txt": "unstaged\n",
    "untracked.txt": "untracked\n",
    "ignored/x.txt": "ignored\n",
  });
}

describe("what a turn did to files", () => {
  test("is undone in every state that a file can be in, and done again, byte for byte; index, head and stash are as they were", async () => {
    const bench = start();
    everyState(bench);
    bench.chmod("untracked.txt", 0o600);
    const before = bench.picture();
    const own = bench.own();
    const id = await bench.turn(() => {
      for (const name of ["clean", "staged", "unstaged", "both", "untracked"])
        bench.write({ [`${name}.txt`]: `${name} by the turn\n` });
      bench.remove("deleted.txt");
      bench.remove("sub");
      renameSync(bench.at("renamed.txt"), bench.at("other name ü.txt"));
      bench.chmod("mode.sh", 0o755);
      bench.write({ "new/folder/made.txt": "made\n", "binary.bin": Buffer.from([0, 1, 2, 255, 254, 0]) });
      symlinkSync("clean.txt", bench.at("link"));
    });
    const after = bench.picture();
    const diff = await bench.undo.diff(id);
    expect(Object.fromEntries(diff.files.map(({ path, state }) => [path, state]))).toEqual({
      ...{ "clean.txt": "changed", "staged.txt": "changed", "unstaged.txt": "changed", "both.txt": "changed" },
      ...{ "untracked.txt": "changed", "deleted.txt": "deleted", "sub/deep.txt": "deleted", "other name ü.txt": "renamed" },
      ...{ "mode.sh": "mode", "new/folder/made.txt": "added", "binary.bin": "added", link: "added" },
    });
    expect(diff.files.find(({ path }) => path === "other name ü.txt")?.from).toBe("renamed.txt");
    expect(diff.files.find(({ path }) => path === "binary.bin")?.binary).toBe(true);
    expect(diff.text).toContain("-unstaged\n+both by the turn");
    expect(diff.text).not.toContain("-old");
    expect(diff.undone).toBe(false);

    const undone = await bench.undo.undo(id);
    expect(undone).toMatchObject({ undone: true, kept: [] });
    expect(undone.files).toHaveLength(13);
    expect(bench.picture()).toEqual(before);
    expect(bench.own()).toEqual(own);
    expect(readdirSync(bench.root)).not.toContain("new");
    expect((await bench.undo.diff(id)).undone).toBe(true);

    const again = await bench.undo.undo(id);
    expect(again).toMatchObject({ undone: false, kept: [] });
    expect(bench.picture()).toEqual({ ...after, "untracked.txt": after["untracked.txt"] });
    await bench.undo.undo(id);
    expect(bench.picture()).toEqual(before);
    expect(bench.own()).toEqual(own);
  });

  test("is kept apart from what a person does before, between its steps, meanwhile and after it", async () => {
    const bench = start();
    bench.commit({ "a.txt": "1\n", "b.txt": "1\n", "c.txt": "1\n", "d.txt": "1\n", "e.txt": "1\n" });
    bench.write({ "a.txt": "by a person, before\n" });
    const id = bench.newOwner();
    await bench.effect(id, () => bench.write({ "a.txt": "by the turn\n", "b.txt": "by the turn\n" }));
    await bench.undo.diff(id);
    bench.write({ "c.txt": "by a person, between\n", "b.txt": "by a person too\n" });
    await bench.effect(id, () => bench.write({ "b.txt": "by the turn again\n", "d.txt": "by the turn\n" }));
    await bench.undo.diff(id);
    await bench.effect(id, () => bench.write({ "e.txt": "by the turn\n", "c.txt": "by a person, while a file was edited\n" }), {
      paths: ["e.txt"],
    });
    await bench.undo.diff(id);
    bench.write({ "d.txt": "by a person, after\n" });

    const { files, kept } = await bench.undo.undo(id);
    expect(files.map(({ path }) => path).sort()).toEqual(["a.txt", "e.txt"]);
    expect(Object.fromEntries(kept.map(({ path, why }) => [path, why]))).toEqual({
      "b.txt": "somebody else changed it while this went on",
      "d.txt": "it was changed since",
    });
    expect(["a", "b", "c", "d", "e"].map((name) => bench.read(`${name}.txt`))).toEqual([
      "by a person, before\n",
      "by the turn again\n",
      "by a person, while a file was edited\n",
      "by a person, after\n",
      "1\n",
    ]);
  });

  test("is undone turn by turn, the latest first; an earlier one is not undone beneath a later", async () => {
    const bench = start();
    bench.commit({ "a.txt": "0\n" });
    const first = await bench.turn(() => bench.write({ "a.txt": "1\n" }));
    await bench.undo.diff(first);
    const second = await bench.turn(() => bench.write({ "a.txt": "2\n" }));
    expect(await bench.undo.undo(first)).toMatchObject({ undone: false, files: [], kept: [{ path: "a.txt" }] });
    expect(bench.read("a.txt")).toBe("2\n");
    await bench.undo.undo(second);
    await bench.undo.undo(first);
    expect(bench.read("a.txt")).toBe("0\n");
  });

  test("does not matter where it comes to nothing, and a turn without effects costs nothing", async () => {
    const bench = start();
    bench.commit({ "a.txt": "0\n" });
    const id = await bench.turn(() => bench.write({ "a.txt": "1\n" }));
    await bench.effect(id, () => bench.write({ "a.txt": "0\n" }));
    expect(await bench.undo.diff(id)).toMatchObject({ text: "", files: [] });
    await expect(bench.undo.undo(id)).rejects.toThrow("nothing to undo");
    expect(bench.undo.knows("m_other")).toBe(false);
    expect(bench.git("for-each-ref", "refs/io").trim().split("\n")).toHaveLength(1);
  });

  test("in parallel calls of one turn is all its own; of two turns in one folder it is undone only where it is certain", async () => {
    const bench = start();
    bench.commit({ "a.txt": "0\n", "b.txt": "0\n", "c.txt": "0\n" });
    const id = bench.newOwner();
    await bench.effect(id, () => bench.effect(id, () => bench.write({ "a.txt": "1\n" }), { paths: ["a.txt"] }));
    expect((await bench.undo.diff(id)).files).toMatchObject([{ path: "a.txt", state: "changed" }]);
    const [one, other] = [bench.newOwner(), bench.newOwner()];
    await bench.effect(one, async () => {
      bench.write({ "b.txt": "1\n" });
      await bench.effect(other, () => bench.write({ "c.txt": "1\n" }), { paths: ["c.txt"] });
    });
    await expect(bench.undo.undo(other)).resolves.toMatchObject({ files: [{ path: "c.txt" }], kept: [] });
    expect(await bench.undo.undo(one)).toMatchObject({ files: [{ path: "b.txt" }], kept: [{ path: "c.txt" }] });
    expect([bench.read("b.txt"), bench.read("c.txt")]).toEqual(["0\n", "0\n"]);
  });
});

describe("a repository in an unusual state", () => {
  test("a merge in progress stays in progress", async () => {
    const bench = start();
    bench.commit({ "a.txt": "base\n", "b.txt": "base\n" });
    bench.git("checkout", "-qb", "other");
    bench.commit({ "a.txt": "theirs\n" });
    bench.git("checkout", "-q", "main");
    bench.commit({ "a.txt": "ours\n" });
    expect(() => bench.git("merge", "-q", "other")).toThrow();
    const [before, own] = [bench.picture(), bench.own()];
    const id = await bench.turn(() => bench.write({ "a.txt": "resolved\n", "b.txt": "changed\n" }));
    expect((await bench.undo.undo(id)).files).toHaveLength(2);
    expect(bench.picture()).toEqual(before);
    expect(bench.own()).toEqual(own);
    expect(bench.git("ls-files", "-u")).toContain("a.txt");
    // Also if only one file is examined, using an index that was released in between.
    const edits = bench.newOwner();
    for (const text of ["edited\n", "edited again\n"]) {
      await bench.effect(edits, () => bench.write({ "b.txt": text }), { paths: ["b.txt"] });
      await bench.undo.diff(edits);
      bench.undo.settle(edits);
    }
    expect(await bench.undo.undo(edits)).toMatchObject({ files: [{ path: "b.txt", state: "changed" }], kept: [] });
    expect(bench.picture()).toEqual(before);
    expect(bench.own()).toEqual(own);
  });

  test("a detached head, no commit at all, and a linked worktree are nothing special", async () => {
    const bench = start();
    const empty = await bench.turn(() => bench.write({ "first.txt": "1\n" }));
    expect((await bench.undo.undo(empty)).files).toMatchObject([{ path: "first.txt", state: "deleted" }]);
    bench.commit({ "a.txt": "1\n" });
    bench.commit({ "a.txt": "2\n" });
    bench.git("checkout", "-q", "--detach", "HEAD~1");
    const id = await bench.turn(() => bench.write({ "a.txt": "by the turn\n" }));
    await bench.undo.undo(id);
    expect(bench.read("a.txt")).toBe("1\n");
    expect(bench.git("rev-parse", "--abbrev-ref", "HEAD").trim()).toBe("HEAD");
    bench.git("worktree", "add", "-q", "../linked", "main");
    const linked = join(bench.top, "linked");
    const other = bench.newOwner();
    await bench.effect(other, () => writeFileSync(join(linked, "a.txt"), "linked\n"), undefined, linked);
    expect((await bench.undo.diff(other)).files).toMatchObject([{ folder: linked, path: "a.txt" }]);
    expect((await bench.undo.undo(other)).files).toHaveLength(1);
  });

  test("submodules are brought back too, and their commits stay", async () => {
    const bench = start();
    const library = join(bench.top, "library");
    mkdirSync(library);
    const inLibrary = (...args: string[]) =>
      execFileSync("git", ["-c", "user.name=T", "-c", "user.email=t@localhost", ...args], { cwd: library });
    inLibrary("init", "-q", "-b", "main");
    writeFileSync(join(library, "l.txt"), "library\n");
    inLibrary("add", "-A");
    inLibrary("commit", "-qm", "l");
    bench.commit({ "a.txt": "1\n" });
    bench.git("submodule", "add", "-q", library, "lib");
    bench.commit();
    const [before, own] = [bench.picture(), bench.own()];
    const id = await bench.turn(() => bench.write({ "lib/l.txt": "changed\n", "lib/new.txt": "new\n", "a.txt": "changed\n" }));
    expect((await bench.undo.diff(id)).files.map(({ path }) => path).sort()).toEqual(["a.txt", "l.txt", "new.txt"]);
    expect((await bench.undo.undo(id)).kept).toEqual([]);
    expect(bench.picture()).toEqual(before);
    expect(bench.own()).toEqual(own);
  });

  test("what git ignores is not kept, and said so; nor are secrets in it written to the repository", async () => {
    const bench = start();
    bench.commit({ ".gitignore": ".env\n", "a.txt": "1\n" });
    bench.write({ ".env": "SECRET=hush-hush\n" });
    const id = bench.newOwner();
    await bench.effect(id, () => bench.write({ ".env": "SECRET=other\n", "a.txt": "2\n" }));
    await bench.effect(id, () => bench.write({ ".env": "SECRET=third\n" }), { paths: [".env"] });
    const { files, notes } = await bench.undo.undo(id);
    expect(files.map(({ path }) => path)).toEqual(["a.txt"]);
    expect(notes.join(" ")).toContain(".gitignore");
    expect(bench.read(".env")).toBe("SECRET=third\n");
    const blobs = bench.git("cat-file", "--batch-all-objects", "--batch-check=%(objectsize)").split("\n");
    expect(blobs).not.toContain(String("SECRET=hush-hush\n".length));
  });

  test("files that git stores in another form come back as they were, and no filter runs to keep them", async () => {
    const bench = start();
    const texts = { "crlf.txt": "one\r\ntwo\r\n", "mixed.txt": "one\r\ntwo\n", "lf.txt": "one\n" };
    bench.write({ ".gitattributes": "*.txt text\n*.up filter=up\n", ...texts });
    // Old enough for git to rely on their times alone.
    for (const name of Object.keys(texts)) utimesSync(bench.at(name), 1_000_000_000, 1_000_000_000);
    bench.commit();
    const ran = join(bench.top, "ran");
    bench.git("config", "core.autocrlf", "true");
    bench.git("config", "filter.up.clean", `sh -c 'touch ${ran}; cat'`);
    bench.git("config", "filter.up.smudge", "cat");
    bench.write({ "x.up": "up\n" });
    const before = bench.picture();
    const id = await bench.turn(() => {
      for (const name of ["crlf", "mixed", "lf"]) bench.write({ [`${name}.txt`]: "other\r\n" });
      bench.write({ "x.up": "changed\n" });
    });
    const { kept } = await bench.undo.undo(id);
    // The bytes of a file with mixed line endings cannot be restored.
    expect(kept).toMatchObject([{ path: "mixed.txt", why: expect.stringContaining("git checkout") }]);
    expect({ ...bench.picture(), "mixed.txt": before["mixed.txt"] }).toEqual(before);
    expect(readdirSync(bench.top)).not.toContain("ran");
  });
});

test("files that git was told to overlook are brought back like any other, and stay overlooked", async () => {
  const bench = start();
  bench.commit({ "local.env": "shared\n", "config.json": "{}\n", "c.txt": "c\n", "left-out.txt": "x\n" });
  bench.git("update-index", "--assume-unchanged", "local.env");
  bench.git("update-index", "--skip-worktree", "config.json", "left-out.txt");
  bench.remove("left-out.txt");
  bench.write({ "config.json": "mine\n" });
  const [before, own] = [bench.picture(), bench.own()];
  const id = await bench.turn(() => bench.write({ "local.env": "by IO\n", "config.json": "by IO\n", "c.txt": "by IO\n" }));
  expect((await bench.undo.diff(id)).files.map(({ path }) => path).sort()).toEqual(["c.txt", "config.json", "local.env"]);
  const edit = await bench.turn(() => bench.write({ "config.json": "by an edit\n" }), { paths: ["config.json"] });
  expect((await bench.undo.undo(edit)).files).toMatchObject([{ path: "config.json", state: "changed" }]);
  expect(bench.read("config.json")).toBe("by IO\n");
  await bench.undo.undo(id);
  expect(bench.picture()).toEqual(before);
  expect(bench.own()).toEqual(own);
});

test("what a person changes, deletes or replaces while an undo is already writing stays theirs", async () => {
  const bench = start();
  const names = Array.from({ length: 300 }, (_, at) => `f${String(at).padStart(3, "0")}.txt`);
  const all = (text: string) => Object.fromEntries(names.map((name) => [name, text]));
  bench.commit(all("one\n"));
  const id = await bench.turn(() => bench.write(all("two\n")));
  const undoing = bench.undo.undo(id);
  // When the first file is written, all have already been checked; the last ones come much later.
  while (bench.read("f000.txt") !== "one\n") await new Promise(setImmediate);
  expect(bench.read("f297.txt")).toBe("two\n");
  bench.write({ "f297.txt": "by a person\n" });
  bench.remove("f298.txt");
  bench.remove("f299.txt");
  symlinkSync("f000.txt", bench.at("f299.txt"));
  const { files, kept } = await undoing;
  expect(kept.map(({ path, why }) => `${path}: ${why}`)).toEqual(
    ["f297.txt", "f298.txt", "f299.txt"].map((path) => `${path}: it was changed since`),
  );
  expect(files).toHaveLength(297);
  expect(bench.read("f297.txt")).toBe("by a person\n");
  expect(existsSync(bench.at("f298.txt"))).toBe(false);
  expect(readlinkSync(bench.at("f299.txt"))).toBe("f000.txt");
});
