import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type BundleTarget, makeBundle, takeBundle } from "../../src/git/bundles.ts";
import { openRepo } from "../../src/git/repository.ts";
import { testGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { project } from "../support/squads.ts";

const git = testGit();
const at = (folder: string, ...args: string[]) => execFileSync("git", args, { cwd: folder, encoding: "utf8" }).trim();

async function placeOf(folder: string): Promise<BundleTarget> {
  const repo = (await openRepo(git, folder))!;
  return { git: repo.git, root: repo.root, scratch: temporaryFolder() };
}

function commit(folder: string, file: string, text: string): string {
  writeFileSync(join(folder, file), text);
  at(folder, "add", "-A");
  at(folder, "-c", "user.name=T", "-c", "user.email=t@localhost", "commit", "-q", "-m", file);
  return at(folder, "rev-parse", "HEAD");
}

/** A project, and a second repository that received its commit as a worker does. */
async function start() {
  const home = project({ "big.txt": randomBytes(200_000).toString("hex") });
  const base = at(home, "rev-parse", "HEAD");
  const away = project({ "other.txt": "another history" });
  const [here, there] = [await placeOf(home), await placeOf(away)];
  const whole = await makeBundle(here, { commit: base });
  await takeBundle(there, whole!, { commit: base, ref: "refs/io/base" });
  at(away, "checkout", "-q", "-B", "work", "refs/io/base");
  return { home, away, here, there, base, whole: whole! };
}

const refs = (folder: string) => at(folder, "for-each-ref", "--format=%(refname)").split("\n");

test("a commit is copied to another repository, and only new commits come back", async () => {
  const { home, away, here, there, base, whole } = await start();
  const result = commit(away, "new.txt", "done");
  const back = await makeBundle(there, { commit: result, known: [base] });
  expect(back!.length).toBeLessThan(whole.length / 100);
  const branch = at(home, "branch", "--show-current");
  await takeBundle(here, back!, { commit: result, base, ref: "refs/io/t_1/1.1" });
  // Only its own ref has changed.
  expect(at(home, "rev-parse", branch)).toBe(base);
  expect(at(home, "show", "refs/io/t_1/1.1:new.txt")).toBe("done");
  expect(await makeBundle(there, { commit: base, known: [base] })).toBeUndefined();
  expect([...refs(home), ...refs(away)].filter((ref) => ref.startsWith("refs/io/bundle"))).toEqual([]);
  expect([here, there].flatMap(({ scratch }) => readdirSync(scratch))).toEqual([]);
});

test("a bundle that is corrupt, contains another commit, or has another base is refused and leaves no ref", async () => {
  const { home, away, here, there, base } = await start();
  const result = commit(away, "new.txt", "done");
  const back = (await makeBundle(there, { commit: result, known: [base] }))!;
  const before = refs(home);
  const broken = Uint8Array.from(back);
  broken[broken.length - 30]! ^= 1;
  const ref = "refs/io/t_1/1.1";
  await expect(takeBundle(here, broken, { commit: result, base, ref })).rejects.toThrow(/refused: it is damaged/);
  await expect(takeBundle(here, back.slice(0, 40), { commit: result, base, ref })).rejects.toThrow(/damaged/);
  await expect(takeBundle(here, back, { commit: base, base, ref })).rejects.toThrow(/brings another commit/);
  await expect(takeBundle(here, back, { commit: "--all", base, ref })).rejects.toThrow(/names no commit/);
  at(away, "checkout", "-q", "--orphan", "elsewhere");
  const stray = commit(away, "stray.txt", "x");
  const elsewhere = (await makeBundle(there, { commit: stray }))!;
  await expect(takeBundle(here, elsewhere, { commit: stray, base, ref })).rejects.toThrow(/does not stand on/);
  expect(refs(home)).toEqual(before);
});

test("an attempt's ref is written only once", async () => {
  const { home, away, here, there, base } = await start();
  const result = commit(away, "new.txt", "done");
  const back = (await makeBundle(there, { commit: result, known: [base] }))!;
  const taken = { commit: result, base, ref: "refs/io/t_1/1.1" };
  await takeBundle(here, back, taken);
  await expect(takeBundle(here, back, taken)).rejects.toThrow();
  expect(at(home, "rev-parse", taken.ref)).toBe(result);
});
