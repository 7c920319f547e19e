import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { Config, parseConfig } from "../src/home/config.ts";
import { pathsOf } from "../src/home/paths.ts";
import { jsonTrouble, valueTrouble } from "../src/lib/input-budget.ts";
import { readJsonInput } from "../src/lib/input-json.ts";
import { packageRoot } from "../src/lib/package-root.ts";
import { oneLine, quoted } from "../src/lib/quoted.ts";
import { realOf } from "../src/lib/real-path.ts";
import { createRedactor } from "../src/lib/redact.ts";
import { stackOf } from "../src/lib/stack.ts";
import { terminalSafe } from "../src/lib/terminal-safe.ts";
import { explainIssues } from "../src/lib/validation.ts";
import { visible } from "../src/lib/visible.ts";
import { createSandbox } from "../src/process/sandbox.ts";
import { findDestructiveCommand } from "../src/shell/destructive-commands.ts";
import { readPlainLine } from "../src/shell/plain-line.ts";
import { readsAlone } from "../src/shell/reads-alone.ts";
import { installSkills } from "../src/skills/install.ts";
import { readShellLine } from "../src/tools/approvals/shell-lines.ts";
import { createShow } from "../src/tools/approvals/show.ts";
import { fileOps } from "../src/tools/file-ops.ts";
import { createPathGuard } from "../src/tools/guard.ts";
import { explainArguments } from "../src/tools/schema.ts";
import { testGit } from "../test/support/git.ts";
import { git } from "../test/support/skills.ts";

const MB = 1_000_000;
const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`key${at}`, at]));

export interface Item {
  what: string;
  /** Prepares the input, unmeasured. */
  before?: () => void;
  work: () => unknown;
}

/** Inputs whose cost depends on their entries, alternatives, levels or invisible characters rather than on their length. */
export function inputs(folder: string): Item[] {
  return [...documents(), ...unseen(), ...lines(), ...braces(folder), ...paths(folder), ...repositories(folder), ...errors()];
}

/** An error that is logged with a stack through the largest files of the bundle. */
function errors(): Item[] {
  const dist = join(packageRoot, "dist");
  const maps = readdirSync(dist).filter((name) => name.endsWith(".js.map"));
  const largest = maps.sort((a, b) => statSync(join(dist, b)).size - statSync(join(dist, a)).size).slice(0, 3);
  const error = new Error("lost");
  error.stack = largest
    .map((name) => join(dist, name.slice(0, -".map".length)))
    .flatMap((file) => [10, 500, 1_000].map((line) => `    at run (${pathToFileURL(file)}:${line}:20)`))
    .join("\n");
  return [{ what: "an error through the three largest files of the bundle", work: () => stackOf(error) }];
}

function documents(): Item[] {
  const many = JSON.stringify(keys(70_000));
  const shape = z.strictObject({ path: z.string() });
  const refused = (schema: z.ZodType, value: unknown) => explainIssues(schema.safeParse(value).error!);
  const page = JSON.stringify({ content: '"\n'.repeat(3_000_000) });
  return [
    { what: "a JSON body of 1 MB in keys", work: () => jsonTrouble(many) },
    { what: "a JSON body of 1 MB in levels", work: () => jsonTrouble("[".repeat(MB)) },
    {
      what: "a JSON body of 1 MB of short texts",
      work: () => jsonTrouble('"",'.repeat(3_000)) ?? jsonTrouble('""'.repeat(MB / 2)),
    },
    { what: "a JSON body of 1 MB of escapes", work: () => jsonTrouble(`"${"\\n".repeat(MB / 2)}"`) },
    { what: "a wiki page of 12 MB as JSON", work: () => readJsonInput(page) },
    { what: "a config of 10,000 unknown keys", work: () => attempt(() => parseConfig(keys(10_000), "config")) },
    { what: "a config with a list of 10,000 bad rules", work: () => refused(Config, { approvalRules: Array(10_000).fill({}) }) },
    { what: "a call with 20,000 unknown arguments, counted", work: () => valueTrouble(keys(20_000)) },
    {
      what: "a call with 9,999 unknown arguments, explained",
      work: () => explainArguments("file_ops", shape.safeParse(keys(9_999)).error!, shape, keys(9_999)),
    },
  ];
}

/** Lines of the length that a command may have. */
function lines(): Item[] {
  return ["a;", "`a ", "f(){ ", "$(", "sh -c '"].map((part) => ({
    what: `a command of 100,000 characters of ${part}`,
    work: () => readShellLine(part.repeat(Math.floor(100_000 / part.length))),
  }));
}

function unseen(): Item[] {
  const redactor = createRedactor(["a-known-secret-0123456789"]);
  const letters = "\u200b\u200d\u2060\ufeff".repeat(MB / 4);
  const on = (what: string, work: (text: string) => unknown): Item => ({
    what: `1 MB of zero-width letters ${what}`,
    work: () => work(letters),
  });
  return [
    on("on one line", (text) => oneLine(text, 300)),
    on("in quotes", (text) => quoted(text, 300)),
    on("in a question", createShow(redactor.clean)),
    on("in a question's summary", createShow(redactor.clean).line),
    on("on a terminal", terminalSafe),
    on("redacted", redactor.clean),
    { what: "a command of 100,000 zero-width letters, shown", work: () => visible(letters.slice(0, 100_000)) },
  ];
}

function braces(folder: string): Item[] {
  const words = [
    "{a,b}".repeat(2_000),
    `{${"a,".repeat(5_000)}}`,
    "{".repeat(5_000) + ",}".repeat(2_500),
    "{a,{b,{c,".repeat(1_100),
  ];
  return words.map((word) => ({
    what: `10 KB of braces: ${word.slice(0, 12)}…`,
    work: () => findDestructiveCommand(`rm -rf ${word}`, { cwd: folder, keep: [] }),
  }));
}

function paths(folder: string): Item[] {
  const home = join(folder, "home");
  const guard = createPathGuard({ paths: pathsOf({ IO_HOME: home }), packageRoot: folder, selfEdit: () => false });
  const tool = fileOps({ guard, write: true });
  const context = { cwd: folder, actor: "bench", owner: "m_1", signal: new AbortController().signal } as never;
  const crowd = join(folder, "crowd");
  const fill = () => {
    if (existsSync(crowd)) return;
    mkdirSync(crowd);
    spawnSync("/bin/sh", ["-c", "seq 1 150000 | xargs touch"], { cwd: crowd });
  };
  const settings = () => ({ sandbox: "project" as const, sandboxRead: [], sandboxNetwork: true });
  const sandbox = createSandbox({ home, guard: { readOnly: () => [] }, settings });
  const call = (args: object) => tool.run(args as never, context).catch(String);
  return [
    { what: "a path of 1,900 missing folders", work: () => realOf(`${folder}/${"a/".repeat(1_900)}b`) },
    {
      what: "a path of 1,900 missing folders, judged",
      work: () => guard.refuse(`${folder}/${"a/".repeat(1_900)}b`, "write", folder),
    },
    {
      what: "a file written below 90 missing folders",
      work: () => call({ operation: "write", path: `${"deep/".repeat(90)}x.txt`, content: "x" }),
    },
    {
      what: "a list of 150,000 files",
      before: fill,
      work: () => call({ operation: "list", path: crowd }),
    },
    { what: "a command in a folder of 150,000 files", before: fill, work: () => sandbox.wrap(["true"], crowd) },
    {
      what: "a command with 400 globs in a folder of 150,000 files",
      before: fill,
      work: () => readsAlone(readPlainLine(`cat ${"z* ".repeat(400)}`), { cwd: crowd, home, border: crowd, ioHome: home }),
    },
    { what: "a list of 150,000 files, with subfolders", work: () => call({ operation: "list", path: folder, recursive: true }) },
  ];
}

function repositories(folder: string): Item[] {
  const source = join(folder, "folders.git");
  const scratch = join(folder, "scratch");
  const root = join(folder, "skills");
  return [
    {
      what: "a skill repository of 30,000 folders in 42 KB",
      before: () => {
        for (const path of [scratch, root]) mkdirSync(path);
        git(folder, "init", "-q", "--bare", source);
        const make = (args: string[], input: string) =>
          spawnSync("git", args, { cwd: source, input, encoding: "utf8" }).stdout.trim();
        const blob = make(["hash-object", "-w", "--stdin"], "x");
        const leaf = make(["mktree"], `100644 blob ${blob}\tx\n`);
        const tree = make(["mktree"], Array.from({ length: 30_000 }, (_, at) => `040000 tree ${leaf}\td${at}\n`).join(""));
        git(source, "update-ref", "refs/heads/main", git(source, "commit-tree", tree, "-m", "folders"));
      },
      work: () =>
        installSkills({ address: source, shown: source, name: "folders" } as never, undefined, {
          ...{ root, scratch, git: testGit(), now: () => new Date() },
          limits: { maxBytes: 50_000_000, maxFiles: 5_000, cloneMs: 60_000 },
        }).catch(String),
    },
  ];
}

function attempt(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}
