import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { bring } from "../../src/git/dependencies.ts";
import { removeTree } from "../../src/process/remove-tree.ts";
import { fingerprint } from "../support/fingerprint.ts";
import { temporaryFolder } from "../support/home.ts";
import { swapper } from "../support/swapper.ts";

const SECRET = "nobody's business\n";
const OWN = "a package\n";
const PACKAGES = 600;

/** A checkout with many packages in one folder, and an outside folder with the same names and secret files. */
function makeGround() {
  const path = realpathSync(temporaryFolder());
  const [from, to, scratch, outside] = ["checkout", "tree", "scratch", "outside"].map((name) => join(path, name)) as [
    ...[string, string, string, string],
  ];
  for (const folder of [from, to, scratch]) mkdirSync(folder);
  const packages = join(from, "node_modules", "@many");
  for (const [folder, text] of [
    [packages, OWN],
    [outside, SECRET],
  ] as const) {
    for (let at = 0; at < PACKAGES; at += 1) {
      mkdirSync(join(folder, `p${at}`), { recursive: true });
      writeFileSync(join(folder, `p${at}`, "index.js"), text);
    }
  }
  writeFileSync(join(from, "node_modules", "first.js"), OWN);
  symlinkSync(outside, join(path, "link"));
  return { path, from, to, scratch, outside, packages, link: join(path, "link"), own: join(path, "own") };
}

function textsIn(folder: string): Map<string, number> {
  const texts = new Map<string, number>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const text = readFileSync(join(entry.parentPath, entry.name), "utf8");
    texts.set(text, (texts.get(text) ?? 0) + 1);
  }
  return texts;
}

/** Whether some but not all packages have been copied. */
function isHalfWay(scratch: string): boolean {
  const [made] = readdirSync(scratch);
  const folder = made === undefined ? undefined : join(scratch, made, "@many");
  const count = folder !== undefined && existsSync(folder) ? readdirSync(folder).length : 0;
  return count > 0 && count < PACKAGES / 2;
}

test.each([
  ["copied", "is put back", false],
  ["shared", "stays", true],
] as const)(
  "a folder swapped for a link while it is %s, and that %s, copies nothing from the link's target",
  async (_, end, share) => {
    const { from, to, scratch, outside, packages, link, own } = makeGround();
    const before = fingerprint(outside);
    const signal = new AbortController().signal;
    let exchanged = false;
    for (let round = 0; !exchanged && round < 20; round += 1) {
      let isOver = false;
      const copying = bring({ from, to, names: ["node_modules"], scratch, share, signal }).finally(() => {
        isOver = true;
      });
      while (!isOver && !isHalfWay(scratch)) await sleep(1);
      exchanged = !isOver;
      if (exchanged) {
        renameSync(packages, own);
        renameSync(link, packages);
        if (end === "is put back") {
          // `cp` continues meanwhile; the check runs after it.
          for (const until = performance.now() + 30; performance.now() < until; );
          renameSync(packages, link);
          renameSync(own, packages);
        }
      }
      await copying;
      if (!exchanged) await removeTree(join(to, "node_modules"));
    }
    expect(exchanged).toBe(true);
    const texts = textsIn(join(to, "node_modules"));
    expect(texts.has(SECRET)).toBe(false);
    expect(readFileSync(join(to, "node_modules", "first.js"), "utf8")).toBe(OWN);
    const isLink = lstatSync(join(to, "node_modules", "@many")).isSymbolicLink();
    expect(texts.get(OWN)).toBe(isLink ? 1 : PACKAGES + 1);
    if (end === "is put back") expect(isLink).toBe(false);
    expect(fingerprint(outside)).toEqual(before);
  },
  60_000,
);

test("a folder constantly swapped while trees are copied and deleted leads nowhere else and does not block the rest", async () => {
  const { from, to, scratch, outside, packages, link, own } = makeGround();
  const before = fingerprint(outside);
  await swapper(packages, own, link, onTestFinished);
  const signal = new AbortController().signal;
  for (const share of [false, true]) {
    await bring({ from, to, names: ["node_modules"], scratch, share, signal });
    expect(textsIn(join(to, "node_modules")).has(SECRET)).toBe(false);
    expect(readFileSync(join(to, "node_modules", "first.js"), "utf8")).toBe(OWN);
    await removeTree(join(to, "node_modules"));
  }
  expect(readdirSync(scratch)).toEqual([]);
  // The swapped folder is deleted wherever it is; the link's target is not.
  for (let round = 0; round < 3; round += 1) await removeTree(join(from, "node_modules")).catch(() => undefined);
  expect(fingerprint(outside)).toEqual(before);
}, 60_000);
