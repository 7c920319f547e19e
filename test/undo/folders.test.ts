import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { createUndoBench, pictureOf } from "../support/undo.ts";
import { until } from "../support/until.ts";

const start = (options?: { isRepository?: boolean; keep?: number }) => createUndoBench(options, onTestFinished);

test("a folder without git is kept too, and no repository is made in it", async () => {
  const bench = start({ isRepository: false });
  bench.write({ "notes/a.md": "one\r\n", "b.txt": "b" });
  const before = bench.picture();
  const id = await bench.turn(() => {
    bench.write({ "notes/a.md": "two\n", "c/d.txt": "new\n" });
    bench.remove("b.txt");
  });
  const diff = await bench.undo.diff(id);
  expect(diff.text).toContain("-one");
  expect(diff.files.map(({ path, state }) => `${state} ${path}`).sort()).toEqual([
    "added c/d.txt",
    "changed notes/a.md",
    "deleted b.txt",
  ]);
  await bench.undo.undo(id);
  expect(bench.picture()).toEqual(before);
  expect(readdirSync(bench.root).sort()).toEqual(["b.txt", "notes"]);
});

test.each([true, false])(
  "a repository inside the project is undone with it, and of one that was made meanwhile it is said that it is not (in git: %s)",
  async (isRepository) => {
    const bench = start({ isRepository });
    bench.write({ "a.txt": "a", "inner/b.txt": "b" });
    const inner = (...args: string[]) => execFileSync("git", args, { cwd: bench.at("inner"), stdio: "ignore" });
    inner("init", "-q");
    inner("add", "-A");
    inner("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "first");
    const id = await bench.turn(() => {
      bench.write({ "a.txt": "changed", "inner/b.txt": "changed", "inner/c.txt": "new" });
      execFileSync("git", ["init", "-q", bench.at("made")]);
      bench.write({ "made/d.txt": "d" });
    });
    const { notes, files } = await bench.undo.diff(id);
    expect(files.map(({ folder, path }) => `${folder.slice(bench.root.length)} ${path}`).sort()).toEqual([
      " a.txt",
      "/inner b.txt",
      "/inner c.txt",
    ]);
    expect(notes).toContain("Not kept (another git repository inside this one): made/.");
    expect(notes.join()).toContain("what commands wrote outside of these folders");
    expect(notes.join()).not.toContain("inner");
    await bench.undo.undo(id);
    expect([bench.read("a.txt"), bench.read("inner/b.txt"), existsSync(bench.at("inner/c.txt"))]).toEqual(["a", "b", false]);
    expect(bench.read("made/d.txt")).toBe("d");
  },
);

test("of a folder without git that is too large nothing is kept but what is edited by name, and that is said", async () => {
  const bench = start({ isRepository: false });
  for (let count = 0; count <= 2_000; count += 1) writeFileSync(bench.at(`f${count}`), "x");
  const id = await bench.turn(() => bench.write({ f1: "by a command" }));
  expect((await bench.undo.diff(id)).notes.join()).toContain("more than 2000 entries");
  await expect(bench.undo.undo(id)).rejects.toThrow("cannot be undone");
  await bench.effect(id, () => bench.write({ f2: "by an edit" }), { paths: ["f2"] });
  expect((await bench.undo.undo(id)).files).toMatchObject([{ path: "f2" }]);
  expect([bench.read("f1"), bench.read("f2")]).toEqual(["by a command", "x"]);
});

test("a home that is kept in git is not the project of a folder in it, and nothing is written into its repository", async () => {
  const bench = start({ isRepository: false });
  const userHome = join(bench.top, "user");
  const app = join(userHome, "app");
  mkdirSync(app, { recursive: true });
  execFileSync("git", ["init", "-q", userHome]);
  writeFileSync(join(userHome, "private.txt"), "nobody's business\n");
  writeFileSync(join(app, "package.json"), "{}\n");
  vi.stubEnv("HOME", userHome);
  onTestFinished(() => void vi.unstubAllEnvs());
  const repository = pictureOf(join(userHome, ".git"));
  const id = bench.newOwner();
  const change = () => writeFileSync(join(app, "package.json"), '{"name":"a"}\n');
  await bench.effect(id, change, { paths: ["."], below: true }, app);
  const diff = await bench.undo.diff(id);
  expect(diff.files.map(({ folder, path }) => join(folder, path))).toEqual([join(app, "package.json")]);
  expect(pictureOf(join(userHome, ".git"))).toEqual(repository);
  await bench.undo.undo(id);
  expect(readFileSync(join(app, "package.json"), "utf8")).toBe("{}\n");
  // A file in the home folder itself is saved when an edit names it, but not when a command changes it.
  const edit = bench.newOwner();
  const file = join(userHome, "private.txt");
  await bench.effect(edit, () => writeFileSync(file, "edited\n"), { paths: ["private.txt"] }, userHome);
  await bench.undo.undo(edit);
  expect(readFileSync(file, "utf8")).toBe("nobody's business\n");
  const command = bench.newOwner();
  await bench.effect(command, () => writeFileSync(file, "by a command\n"), { paths: ["."], below: true }, userHome);
  expect((await bench.undo.diff(command)).notes.join()).toContain("it holds your home");
  expect(pictureOf(join(userHome, ".git"))).toEqual(repository);
});

test("a repository around IO's data folder is not kept whole", async () => {
  const bench = start({ isRepository: false });
  execFileSync("git", ["init", "-q", bench.top]);
  const repository = pictureOf(join(bench.top, ".git"));
  bench.write({ "a.txt": "before\n" });
  const id = await bench.turn(() => bench.write({ "a.txt": "after\n" }));
  expect((await bench.undo.diff(id)).files.map(({ folder, path }) => join(folder, path))).toEqual([bench.at("a.txt")]);
  expect(pictureOf(join(bench.top, ".git"))).toEqual(repository);
});

test("IO's own data is nobody's project, and files outside of the folder one stands in are kept where they are", async () => {
  const bench = start();
  bench.commit({ "a.txt": "1\n" });
  const own = bench.newOwner();
  await bench.effect(own, () => writeFileSync(join(bench.home, "x"), "x"), { paths: [join(bench.home, "x")] });
  expect(bench.undo.knows(own)).toBe(false);
  const outside = join(bench.top, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "o.txt"), "before\n");
  const id = bench.newOwner();
  const work = () => {
    writeFileSync(join(outside, "o.txt"), "after\n");
    bench.write({ "a.txt": "2\n" });
  };
  await bench.effect(id, work, { paths: ["../outside/o.txt", "a.txt"] });
  expect((await bench.undo.undo(id)).files.map(({ folder, path }) => join(folder, path)).sort()).toEqual([
    join(outside, "o.txt"),
    bench.at("a.txt"),
  ]);
  expect(readFileSync(join(outside, "o.txt"), "utf8")).toBe("before\n");
});

test("nothing is written through a link that stands where a folder was, and a huge file is left out", async () => {
  const bench = start();
  bench.commit({ "sub/a.txt": "1\n", "b.txt": "1\n" });
  const elsewhere = join(bench.top, "elsewhere");
  mkdirSync(elsewhere);
  writeFileSync(join(elsewhere, "a.txt"), "2\n");
  writeFileSync(bench.at("huge.bin"), Buffer.alloc(20_000_001));
  const id = await bench.turn(() => {
    bench.write({ "sub/a.txt": "2\n", "b.txt": "2\n" });
    bench.remove("huge.bin");
  });
  await bench.undo.diff(id);
  renameSync(bench.at("sub"), join(bench.top, "moved"));
  symlinkSync(elsewhere, bench.at("sub"));
  const { files, kept, notes } = await bench.undo.undo(id);
  expect(files.map(({ path }) => path)).toEqual(["b.txt"]);
  expect(kept).toMatchObject([{ path: "sub/a.txt", why: "it was changed since" }]);
  expect(notes.join()).toContain("larger than 20 MB");
  expect(readFileSync(join(elsewhere, "a.txt"), "utf8")).toBe("2\n");
});

test("a file that becomes a folder, a link that becomes a file, and the other way round come back", async () => {
  const bench = start();
  bench.commit({ file: "a file\n", "folder/in.txt": "in\n", target: "t\n" });
  symlinkSync("target", bench.at("link"));
  bench.git("add", "-A");
  const before = bench.picture();
  const id = await bench.turn(() => {
    for (const name of ["file", "folder", "link"]) bench.remove(name);
    bench.write({ "file/x.txt": "x\n", folder: "now a file\n", link: "now a file\n" });
    rmSync(bench.at("target"));
    symlinkSync("folder", bench.at("target"));
  });
  const after = bench.picture();
  expect((await bench.undo.undo(id)).kept).toEqual([]);
  expect(bench.picture()).toEqual(before);
  await bench.undo.undo(id);
  expect(bench.picture()).toEqual(after);
});

test("an undo that is killed in the middle is finished by the next life, and leaves no half-written file", async () => {
  const bench = start();
  const names = Array.from({ length: 400 }, (_, at) => `d${at % 20}/f${at}.txt`);
  bench.commit(Object.fromEntries(names.map((name) => [name, `before ${name}\n`])));
  const before = bench.picture();
  const id = await bench.turn(() => bench.write(Object.fromEntries(names.map((name) => [name, `after ${name}\n`]))));
  await bench.undo.diff(id);
  const undone = () => names.filter((name) => bench.read(name).startsWith("before")).length;
  const wasCut = async (): Promise<boolean> => {
    const child: ChildProcess = spawn(
      process.execPath,
      ["--import", "tsx", join(packageRoot, "test/support/undoer.ts"), bench.home, id],
      { stdio: "ignore" },
    );
    const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    await until("the undo to be under way", () => undone() > 0 || child.exitCode !== null, 60_000);
    child.kill("SIGKILL");
    await exited;
    return undone() < names.length;
  };
  // A fast machine may finish before the kill: then everything is redone and tried again.
  for (let tries = 1; !(await wasCut()) && tries < 10; tries += 1) await bench.reopened().undo(id);
  expect(undone()).toBeLessThan(names.length);
  writeFileSync(bench.at(`${names[399]!.replace("f399", ".f399")}.0123456789ab.tmp`), "half");
  bench.write({ [names[398]!]: "by a person, before the next start\n" });
  const next = bench.reopened();
  next.recover();
  expect((await next.diff(id)).undone).toBe(true);
  expect(bench.picture()).toEqual({ ...before, [names[398]!]: bench.picture()[names[398]!] });
  expect(bench.read(names[398]!)).toBe("by a person, before the next start\n");
});

test("an effect that is killed in the middle counts as far as it came, and its half-written file goes", async () => {
  const bench = start();
  bench.commit({ "a.txt": "1\n", "b.txt": "1\n" });
  const id = bench.newOwner();
  await bench.undo.before(id, { paths: ["a.txt"] }, { cwd: bench.root });
  bench.write({ "a.txt": "2\n", ".a.txt.0123456789ab.tmp": "half", ".other.0123456789ab.tmp": "somebody else's" });
  const next = bench.reopened();
  next.recover();
  const diff = await next.diff(id);
  expect(diff.files).toMatchObject([{ path: "a.txt", state: "changed" }]);
  expect(diff.notes.join()).toContain("was stopped while this went on");
  expect(readdirSync(bench.root).sort()).toEqual([".git", ".other.0123456789ab.tmp", "a.txt", "b.txt"]);
  await next.undo(id);
  expect(bench.read("a.txt")).toBe("1\n");
});

test("what is kept goes by age and by number, in the repository and in the data folder", async () => {
  const bench = start({ keep: 2 });
  bench.commit({ "a.txt": "0\n" });
  const ids: string[] = [];
  for (const text of ["1\n", "2\n", "3\n"]) {
    ids.push(await bench.turn(() => bench.write({ "a.txt": text })));
    await bench.undo.diff(ids.at(-1)!);
  }
  const refs = () => bench.git("for-each-ref", "--format=%(refname)", "refs/io").split("\n").filter(Boolean);
  expect(refs()).toHaveLength(3);
  expect(await bench.undo.removeOld("")).toBe(1);
  expect(bench.undo.knows(ids[0]!)).toBe(false);
  expect([refs().length, readdirSync(join(bench.home, "undo")).length]).toEqual([2, 2]);
  bench.git("gc", "-q", "--prune=now");
  await bench.undo.undo(ids[2]!);
  await bench.undo.undo(ids[1]!);
  expect(bench.read("a.txt")).toBe("1\n");
  const later = new Date(Date.now() + 1_000);
  expect(await bench.undo.clean({ before: later, dryRun: true })).toBe(2);
  expect(await bench.undo.clean({ before: undefined, dryRun: false })).toBe(0);
  expect(await bench.undo.clean({ before: later, dryRun: false })).toBe(2);
  expect([refs(), readdirSync(join(bench.home, "undo"))]).toEqual([[], []]);
  expect(existsSync(bench.at(".git/refs/io/undo"))).toBe(false);
});

/** Seeded pseudo-random numbers below a limit. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test.each([1, 2, 3])(
  "whatever turns do to files, undone one after the other they leave the bytes that were there (seed %i)",
  async (seed) => {
    const bench = start({ isRepository: seed !== 3 });
    const pick = numbers(seed * 7_919);
    const names = ["a.txt", "b.bin", "dir/c.txt", "dir/d e.txt", "dir/deep/ü.txt", "-x", "run.sh"];
    const bytes = () => Buffer.from(Array.from({ length: pick(200) }, () => [0, 10, 13, 65, 195, 255][pick(6)]!));
    const step = () => {
      const name = names[pick(names.length)]!;
      const there = existsSync(bench.at(name));
      const kind = pick(5);
      if (kind === 0 && there) rmSync(bench.at(name));
      else if (kind === 1 && there) bench.chmod(name, pick(2) === 0 ? 0o755 : 0o644);
      else if (kind === 2 && there && !existsSync(bench.at(`${name}.moved`)))
        renameSync(bench.at(name), bench.at(`${name}.moved`));
      else bench.write({ [name]: bytes() });
    };
    for (const name of names) if (pick(3) > 0) bench.write({ [name]: bytes() });
    if (seed !== 3) bench.commit();
    const states = [bench.picture()];
    const ids: string[] = [];
    for (let turn = 0; turn < 4; turn += 1) {
      const id = bench.newOwner();
      for (let effect = 0; effect <= pick(2); effect += 1)
        await bench.effect(id, () => {
          for (let count = 0; count <= pick(4); count += 1) step();
        });
      await bench.undo.diff(id);
      // A turn whose steps cancel each other out has nothing to undo.
      if (JSON.stringify(bench.picture()) === JSON.stringify(states.at(-1))) continue;
      ids.push(id);
      states.push(bench.picture());
    }
    for (const [at, id] of [...ids.entries()].reverse()) {
      expect((await bench.undo.undo(id)).kept).toEqual([]);
      expect(bench.picture()).toEqual(states[at]);
    }
    for (const [at, id] of ids.entries()) {
      await bench.undo.undo(id);
      expect(pictureOf(bench.root)).toEqual(states[at + 1]);
    }
  },
);
