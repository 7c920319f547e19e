import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { copyPlainAt } from "../../src/lib/pinned/copy.ts";
import { makeFolder, openFolder, withFolder } from "../../src/lib/pinned/folder.ts";
import { entriesAt } from "../../src/lib/pinned/list.ts";
import { readPlain, readPlainAt } from "../../src/lib/pinned/read.ts";
import { appendFile, createFile, removeFile, replaceFile } from "../../src/lib/pinned/write.ts";
import { temporaryFolder } from "../support/home.ts";
import { soon } from "../support/soon.ts";
import { swapper } from "../support/swapper.ts";

const SECRET = "the-secret";

/** A folder that others can write, with a secret next to it. */
function place() {
  const root = realpathSync(temporaryFolder());
  for (const name of ["open", "hidden/below"]) mkdirSync(join(root, name), { recursive: true });
  for (const name of ["file.md", "below/file.md", "below/secret.md"]) writeFileSync(join(root, "hidden", name), SECRET);
  return { root, open: join(root, "open"), hidden: join(root, "hidden") };
}

test("a regular file is read; a link, pipe, socket, device, folder or oversized file is identified and not opened", async () => {
  const { open, hidden } = place();
  const server = createServer().listen(join(open, "socket"));
  onTestFinished(() => void server.close());
  writeFileSync(join(open, "plain"), "text");
  symlinkSync(join(hidden, "file.md"), join(open, "link"));
  symlinkSync(hidden, join(open, "linked"));
  symlinkSync("/dev", join(open, "devices"));
  execFileSync("mkfifo", [join(open, "pipe")]);
  mkdirSync(join(open, "folder"));
  writeFileSync(join(open, "huge"), "");
  truncateSync(join(open, "huge"), 10_000_000_000);
  const started = performance.now();
  const found = (path: string) => {
    const read = readPlainAt(path, 1_000);
    return "absent" in read ? read.absent : read.bytes.toString("utf8");
  };
  const names = [
    "plain",
    "link",
    "linked/file.md",
    "linked/below/file.md",
    "linked",
    "devices/zero",
    "pipe",
    "socket",
    "folder",
    "huge",
    "nothing",
    "plain/x",
  ];
  expect(names.map((name) => found(join(open, name)))).toEqual([
    "text",
    ...["a link", "a link", "a link", "a link", "a link"],
    ...["not a regular file", "not a regular file", "a folder", "too large", "missing", "missing"],
  ]);
  expect(found("/dev/zero")).toBe("not a regular file");
  expect(copyPlainAt(join(open, "link"), join(open, "copy"), 1_000)).toBe("a link");
  expect(existsSync(join(open, "copy"))).toBe(false);
  expect(performance.now() - started).toBeLessThan(soon(2_000));
});

test("an entry name is a single name: paths, dots and the empty name are refused", () => {
  const { open } = place();
  withFolder(open, (folder) => {
    for (const name of ["", ".", "..", "../hidden/file.md", "a/b", "a\0b"]) {
      expect(readPlain(folder, name, 10)).toEqual({ absent: "missing" });
      expect(() => createFile(folder, name, "x")).toThrow(/EINVAL/);
    }
    createFile(folder, "a\nname", "x");
    expect(readPlain(folder, "a\nname", 10)).toMatchObject({ bytes: Buffer.from("x") });
  });
});

test("writes stay in their folder: links are replaced, never followed, and pipes do not block", () => {
  const { open, hidden } = place();
  symlinkSync(join(hidden, "file.md"), join(open, "link"));
  symlinkSync(join(hidden, "new.md"), join(open, "dangling"));
  symlinkSync(hidden, join(open, "linked"));
  execFileSync("mkfifo", [join(open, "pipe")]);
  withFolder(open, (folder) => {
    expect(() => appendFile(folder, "link", "x")).toThrow(/ELOOP.*open\/link/);
    expect(() => appendFile(folder, "dangling", "x")).toThrow(/ELOOP/);
    expect(() => appendFile(folder, "pipe", "x")).toThrow(/ENXIO/);
    expect(() => createFile(folder, "dangling", "x")).toThrow(/EEXIST/);
    replaceFile(folder, "link", "mine");
    replaceFile(folder, "pipe", "mine");
    expect(removeFile(folder, "dangling")).toBe(true);
  });
  expect(() => openFolder(join(open, "linked"))).toThrow();
  expect(() => makeFolder(join(open, "linked", "below"))).toThrow();
  expect(entriesAt(join(open, "linked"))).toEqual([]);
  expect(readdirSync(hidden).sort()).toEqual(["below", "file.md"]);
  expect(readFileSync(join(hidden, "file.md"), "utf8")).toBe(SECRET);
  expect(["link", "pipe"].map((name) => readFileSync(join(open, name), "utf8"))).toEqual(["mine", "mine"]);
});

test("a folder constantly swapped with a link never redirects a read, a listing or a write", async () => {
  const { root, open, hidden } = place();
  const folder = join(open, "folder");
  const below = join(folder, "below");
  mkdirSync(below, { recursive: true });
  for (const name of ["file.md", "below/file.md"]) writeFileSync(join(folder, name), "mine");
  symlinkSync(hidden, join(root, "away"));
  await swapper(folder, join(root, "real"), join(root, "away"), onTestFinished);
  const seen = new Set<string>();
  const until = performance.now() + 1_500;
  for (let round = 0; performance.now() < until; round += 1) {
    const read = readPlainAt(join(round % 2 === 0 ? folder : below, "file.md"), 1_000);
    seen.add("absent" in read ? read.absent : read.bytes.toString("utf8"));
    for (const { name } of entriesAt(below)) seen.add(name);
    try {
      withFolder(round % 2 === 0 ? folder : below, (held) => replaceFile(held, `made-${round % 5}`, "made", { durable: false }));
    } catch {
      // It was missing, or a link, at that moment.
    }
  }
  expect(seen).toContain("mine");
  expect([...seen].filter((found) => [SECRET, "secret.md"].includes(found))).toEqual([]);
  expect(readdirSync(hidden, { recursive: true }).sort()).toEqual(["below", "below/file.md", "below/secret.md", "file.md"]);
});
