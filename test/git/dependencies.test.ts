import { spawn } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bring, installedIn } from "../../src/git/dependencies.ts";
import { movedIn } from "../../src/git/relocate.ts";
import { packageRoot } from "../../src/lib/package-root.ts";
import { bundled } from "../support/bundled.ts";
import { temporaryFolder } from "../support/home.ts";
import { killed } from "../support/processes.ts";
import { until } from "../support/until.ts";

const FILES = 3_000;

function ground() {
  const path = realpathSync(temporaryFolder());
  const [from, to, scratch] = ["checkout", "tree", "scratch"].map((name) => join(path, name)) as [string, string, string];
  for (const folder of [from, to]) mkdirSync(folder);
  return { from, to, scratch };
}

function install(folder: string, files = FILES): void {
  for (let at = 0; at < files; at += 1) {
    mkdirSync(join(folder, `p${at % 50}`), { recursive: true });
    writeFileSync(join(folder, `p${at % 50}`, `f${at}.js`), `${at}\n`);
  }
}

const countIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length;

test("an interrupted copy leaves nothing, and the next one is complete", async () => {
  const { from, to, scratch } = ground();
  install(join(from, "node_modules"));
  const cut = new AbortController();
  const common = { from, to, names: ["node_modules"], scratch, share: false };
  const first = bring({ ...common, signal: cut.signal });
  first.catch(() => undefined);
  await until(
    "some of it",
    () => existsSync(scratch) && readdirSync(scratch).some((name) => readdirSync(join(scratch, name)).length > 0),
  );
  cut.abort();
  await expect(first).rejects.toThrow();
  expect(existsSync(join(to, "node_modules"))).toBe(false);
  expect(readdirSync(scratch)).not.toEqual([]);
  await bring({ ...common, signal: new AbortController().signal });
  expect(countIn(join(to, "node_modules"))).toBe(FILES);
  expect(readdirSync(scratch)).toEqual([]);
});

test("a process killed during a copy leaves nothing valid, and the next copy is complete", async () => {
  const { from, to, scratch } = ground();
  install(join(from, "node_modules"));
  const program = await bundled(join(packageRoot, "test", "support", "bringer.ts"));
  const copied = () => {
    try {
      return existsSync(scratch) ? countIn(scratch) : 0;
    } catch {
      // The remains of the killed process are being removed right now.
      return 0;
    }
  };
  for (const most of [1, FILES / 3, FILES / 2]) {
    const child = spawn(process.execPath, [program, from, to, scratch], { stdio: "inherit" });
    const before = copied();
    await until(
      "some of it",
      () => copied() > before + most || existsSync(join(to, "node_modules")) || child.exitCode !== null,
      20_000,
    );
    await killed(child);
    if (existsSync(join(to, "node_modules"))) expect(countIn(join(to, "node_modules"))).toBe(FILES);
  }
  await bring({ from, to, scratch, names: ["node_modules"], share: false, signal: new AbortController().signal });
  expect(countIn(join(to, "node_modules"))).toBe(FILES);
});

test("trees of a run share files with each other but never with the user; caches are not shared", async () => {
  const { from, to, scratch } = ground();
  const other = join(to, "..", "other");
  mkdirSync(other);
  install(join(from, "node_modules"), 3);
  mkdirSync(join(from, "node_modules", ".cache"));
  writeFileSync(join(from, "node_modules", ".cache", "x"), "old");
  const common = { names: ["node_modules"], scratch, signal: new AbortController().signal };
  await bring({ ...common, from, to, share: false });
  await bring({ ...common, from: to, to: other, share: true });
  const inode = (top: string) => lstatSync(join(top, "node_modules", "p1", "f1.js")).ino;
  expect(inode(to)).not.toBe(inode(from));
  expect(inode(other)).toBe(inode(to));
  expect(existsSync(join(other, "node_modules", ".cache"))).toBe(false);
});

test("links and environments that point into the first tree are rewritten to the second", async () => {
  const { from, to, scratch } = ground();
  const site = join(from, "my env", "lib", "python3.11", "site-packages");
  mkdirSync(site, { recursive: true });
  mkdirSync(join(from, "my env", "bin"));
  writeFileSync(join(from, "my env", "pyvenv.cfg"), "home = /usr/bin\n");
  writeFileSync(join(from, "my env", "bin", "tool"), `#!${from}/my env/bin/python\nimport x\n`, { mode: 0o755 });
  writeFileSync(join(site, "x.pth"), `${from}/src\n${from}-else/src\n/elsewhere${from}\n`);
  symlinkSync(join(from, "packages"), join(site, "linked"));
  const names = installedIn({ root: from, ignored: ["my env/", "dist/", "notes.log"] });
  expect(names).toEqual(["my env"]);
  await bring({ from, to, names, scratch, share: false, signal: new AbortController().signal });
  const there = join(to, "my env");
  expect(readFileSync(join(there, "bin", "tool"), "utf8")).toBe(`#!${to}/my env/bin/python\nimport x\n`);
  expect(lstatSync(join(there, "bin", "tool")).mode & 0o777).toBe(0o755);
  expect(readFileSync(join(there, "lib", "python3.11", "site-packages", "x.pth"), "utf8")).toBe(
    `${to}/src\n${from}-else/src\n/elsewhere${from}\n`,
  );
  expect(readlinkSync(join(there, "lib", "python3.11", "site-packages", "linked"))).toBe("../../../../packages");
  expect(readFileSync(join(site, "x.pth"), "utf8")).toContain(`${from}/src`);
});

test("only paths inside the tree are rewritten, not ones with the same prefix", () => {
  expect(movedIn("/a/b:/a/b/bin:/a/bc:/x/a/b:/a/b-c:'/a/b'", "/a/b", "/t")).toBe("/t:/t/bin:/a/bc:/x/a/b:/a/b-c:'/t'");
});
