import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { openGit } from "../src/daemon/core.ts";
import { type Paths, pathsOf } from "../src/home/paths.ts";
import { createLog } from "../src/lib/log.ts";
import { realOf } from "../src/lib/real-path.ts";
import { createRedactor } from "../src/lib/redact.ts";
import { findPrograms } from "../src/process/programs.ts";
import { createSandbox } from "../src/process/sandbox.ts";
import { createShells } from "../src/process/shells.ts";
import { openStore, type Store } from "../src/store/open.ts";
import { fileOps } from "../src/tools/file-ops.ts";
import { createGate } from "../src/tools/gate.ts";
import { createPathGuard, type PathGuard } from "../src/tools/guard.ts";
import { createUndo, type Undo } from "../src/undo/undo.ts";
import { judgeFixedPart } from "./prompt.ts";
import { build, describe, judge, median, temporaryFolder } from "./support.ts";

const FOLDERS = 2_500;
const FILES_EACH = 20;
const LIMIT = 3;
const SNAPSHOT_LIMIT = 1.5;

/** Compares file_ops on a repository of 50,000 files with the programs that people use for the same. */
export async function run(args: string[]): Promise<void> {
  const rounds = Number(args[0] ?? 7);
  build();
  const folder = temporaryFolder();
  try {
    const project = join(realOf(folder.path), "project");
    makeRepository(project);
    const paths = pathsOf({ IO_HOME: join(folder.path, "io"), HOME: folder.path });
    const guard = createPathGuard({ paths, packageRoot: join(folder.path, "package"), selfEdit: () => false });
    const tool = fileOps({ guard, write: true });
    const context = { cwd: project, actor: "bench", owner: "bench", signal: new AbortController().signal };
    const own = (call: Record<string, unknown>, expected: string) => async () => {
      const answer = await tool.run(call, context);
      if (!answer.includes(expected)) throw new Error(`not what was expected: ${answer.slice(0, 300)}`);
    };
    const file = "src/m1/p1/f1.ts";
    let turn = 0;
    const edit = async () => {
      turn += 1;
      const [old, fresh] = turn % 2 === 1 ? ["thing_7(", "other_7("] : ["other_7(", "thing_7("];
      await own({ operation: "edit", path: file, edits: [{ old, new: fresh }] }, "Edited")();
    };
    const [searchWith, findWith] = [searcher(), finder()];
    const pairs: [name: string, ours: () => Promise<void>, theirs: string[]][] = [
      ["search", own({ operation: "search", query: "NEEDLE_WORD" }, "[10 lines in 10 files"), searchWith("-F", "NEEDLE_WORD")],
      [
        "search by expression",
        own({ operation: "search", query: "NEEDLE_[A-Z]+", regex: true }, "[10 lines"),
        searchWith("-E", "NEEDLE_[A-Z]+"),
      ],
      ["find", own({ operation: "find", glob: "f19.tsx" }, "Nothing"), findWith("f19.tsx")],
      ["edit", edit, ["sed", "-i", "s/thing_8(/thing_8(/", file]],
    ];
    for (const [name, ours, theirs] of pairs) await compare(name, ours, theirs, project, rounds);
    await compareSnapshots(paths, guard, project, rounds);
    await judgeFixedPart();
  } finally {
    folder.remove();
  }
}

/** Compares the snapshot before a turn's first effect with `git stash create` on the same tree. */
async function compareSnapshots(paths: Paths, guard: PathGuard, project: string, rounds: number): Promise<void> {
  mkdirSync(paths.home, { recursive: true });
  // Some changed files and some new ones, as in the middle of a day's work.
  for (let file = 0; file < 10; file += 1) writeFileSync(join(project, `src/m2/p${file}/f1.ts`), `changed ${file}\n`);
  for (let file = 0; file < 10; file += 1) writeFileSync(join(project, `src/m2/p${file}/new.ts`), `new ${file}\n`);
  const env = { PATH: process.env.PATH, HOME: dirname(paths.home) };
  const programs = findPrograms({ env, closed: [paths.home] });
  const { wrap } = createSandbox({ home: paths.home, guard, env, programs });
  const shells = createShells(wrap);
  const log = createLog({ folder: paths.logs, redactor: createRedactor() });
  const git = openGit({ env, home: paths.home, programs, wrap, shells, redactor: createRedactor() });
  const store = openStore(paths.database);
  const undo = createUndo({ store, git, folder: paths.undo, home: paths.home, log });
  let turn = 0;
  const keep = async () => {
    turn += 1;
    const end = await undo.before(`m_bench${turn}`, { paths: ["."], below: true }, { cwd: project });
    setImmediate(end);
  };
  const commit = ["git", "-c", "user.name=b", "-c", "user.email=b@example.com", "stash", "create"];
  try {
    await compare("snapshot", keep, commit, project, rounds, { limit: SNAPSHOT_LIMIT, settle: undo.close });
    const { notes, files } = await undo.diff(`m_bench${turn}`);
    if (files.length > 0 || notes.length !== 1) throw new Error(`not kept: ${notes.join(" ")}`);
    await judgeReading(store, undo.before, guard, project);
  } finally {
    await undo.close();
    shells.close();
    store.close();
  }
}

/** Checks that no snapshot is made for a turn that only reads. */
async function judgeReading(store: Store, before: Undo["before"], guard: PathGuard, project: string): Promise<void> {
  let kept = 0;
  const gate = createGate({
    ...{ store, redactor: createRedactor(), log: createLog({ folder: project, redactor: createRedactor() }) },
    policy: () => undefined,
    beforeEffect: (...args) => {
      kept += 1;
      return before(...args);
    },
  });
  const [tool] = gate.bind([fileOps({ guard, write: true })], { cwd: project, actor: "bench" });
  const invocation = {
    sessionId: "s",
    owner: "m_reads",
    attempt: 1,
    signal: new AbortController().signal,
    flush: async () => {},
  };
  const calls = [
    { operation: "read", path: "src/m1/p1/f1.ts" },
    { operation: "find", glob: "f19.ts" },
  ];
  for (const [at, call] of calls.entries()) await tool!.call(call, { ...invocation, callId: `c${at}` });
  judge("snapshots of a turn that only looks", kept, 0);
}

/** Alternates between the two, so that other load on the machine affects both alike. */
async function compare(
  name: string,
  ours: () => Promise<void>,
  theirs: string[],
  cwd: string,
  rounds: number,
  { limit = LIMIT, settle }: { limit?: number; settle?: () => Promise<void> } = {},
): Promise<void> {
  const times = { ours: [] as number[], theirs: [] as number[] };
  const [program = "", ...rest] = theirs;
  for (let round = -1; round < rounds; round += 1) {
    const began = performance.now();
    await ours();
    const took = performance.now() - began;
    await settle?.();
    const between = performance.now();
    // A search that finds nothing exits with 1.
    spawnSync(program, rest, { cwd, maxBuffer: 1e9 });
    if (round < 0) continue;
    times.ours.push(took);
    times.theirs.push(performance.now() - between);
  }
  console.log(describe(settle ? name : `file_ops ${name}`, times.ours));
  console.log(
    describe(
      theirs
        .filter((word) => !word.startsWith("-") && !word.includes("="))
        .slice(0, 2)
        .join(" "),
      times.theirs,
    ),
  );
  judge(`${name}, times ${program}`, median(times.ours) / median(times.theirs), limit);
}

const isThere = (program: string) => spawnSync(program, ["--version"]).status === 0;

function searcher(): (kind: "-F" | "-E", text: string) => string[] {
  if (!isThere("rg")) return (kind, text) => ["git", "grep", "-n", "-I", "--untracked", kind, "-e", text];
  return (kind, text) => ["rg", "--no-config", "-n", ...(kind === "-F" ? [kind] : []), "-e", text, "."];
}

function finder(): (glob: string) => string[] {
  const fd = ["fd", "fdfind"].find(isThere);
  if (fd !== undefined) return (glob) => [fd, "--hidden", "--glob", glob];
  if (isThere("rg")) return (glob) => ["rg", "--no-config", "--files", "--hidden", "--glob", glob];
  return (glob) => ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", `*${glob}`];
}

function makeRepository(root: string): void {
  let number = 0;
  for (let folder = 0; folder < FOLDERS; folder += 1) {
    const path = join(root, "src", `m${Math.floor(folder / 50)}`, `p${folder % 50}`);
    mkdirSync(path, { recursive: true });
    for (let file = 0; file < FILES_EACH; file += 1) {
      number += 1;
      const lines = Array.from(
        { length: 60 },
        (_, line) => `export const thing_${line}(value) { return value * ${line} + ${number}; }`,
      );
      if (number % 5_000 === 0) lines.push('const needle = "NEEDLE_WORD";');
      writeFileSync(join(path, `f${file}.ts`), `${lines.join("\n")}\n`);
    }
  }
  writeFileSync(join(root, ".gitignore"), "dist/\n*.log\nbuild/\n/coverage\n");
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=b", "-c", "user.email=b@example.com", ...args], { cwd: root });
  git("init", "-q");
  // Git's background maintenance could still write while the folder is being removed.
  git("config", "gc.auto", "0");
  git("config", "maintenance.auto", "false");
  git("add", "-A");
  git("commit", "-q", "-m", "all");
}
