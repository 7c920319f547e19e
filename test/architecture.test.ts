import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { packageRoot } from "../src/lib/paths.ts";

const src = join(packageRoot, "src");

/**
 * The rooms from the ground up, and what each may import besides itself. `lib` and `protocol` are open to all.
 */
const MAY_IMPORT: Record<string, readonly string[]> = {
  lib: [],
  protocol: [],
  store: [],
  process: [],
  shell: [],
  engine: ["process"],
  git: ["process"],
  project: ["process", "git"],
  tools: ["store", "process", "shell"],
  wiki: ["store", "tools"],
  skills: ["store", "process", "shell", "git", "tools"],
  dispatch: ["store"],
  cluster: ["store", "process", "dispatch"],
  away: ["store", "dispatch", "engine", "process", "git", "tools"],
  squads: ["store", "away", "engine", "process", "shell", "git", "project", "tools"],
  swarm: ["store", "away", "engine", "process", "git", "project", "tools"],
  orchestrator: ["store", "engine", "squads", "swarm"],
  channels: ["store", "engine", "tools", "wiki", "skills", "squads", "swarm", "orchestrator"],
  daemon: [
    ...["store", "dispatch", "cluster", "away", "engine", "process", "git", "project", "tools", "wiki", "skills"],
    ...["squads", "swarm", "orchestrator", "channels"],
  ],
  backup: ["store"],
  client: [],
  tui: ["client"],
  cli: ["store", "engine", "process", "swarm", "cluster", "daemon", "backup", "client", "tui"],
};
const OPEN_TO_ALL = ["lib", "protocol"];

/** What opens a file by its path, and so could be led astray by a link, or held up by a pipe. */
const OPENING =
  /^(?:readFile|writeFile|appendFile|open|copyFile|cp)(?:Sync)?$|^(?:openAsBlob|createReadStream|createWriteStream|default)$/;
/** Who may open files by other means than `lib/pinned`, and why nobody else can have put something in their place. */
const MAY_OPEN: Record<string, string> = {
  "lib/pinned/folder.ts": "opens folders for all others",
  "lib/pinned/read.ts": "opens files for all others",
  "lib/pinned/write.ts": "opens files for all others",
  "lib/alive.ts": "reads /proc",
  "lib/api-token.ts": "the token, which no command can write",
  "lib/config.ts": "config.json, which no command can write",
  "lib/daemon-file.ts": "daemon.json, which no command can write",
  "lib/stack.ts": "IO's own code",
  "lib/version.ts": "IO's own code",
  "store/flusher.ts": "the database's own log, which no command can write",
  "store/lock.ts": "reads /proc",
  "process/exec.ts": "a file that the caller names, made before the program starts",
  "process/leftover-processes.ts": "reads /proc",
  "process/wall/probe.ts": "a folder of its own, before any command runs",
  "process/wall/connection-judge.ts": "reads /proc",
  "process/wall/other-mounts.ts": "reads /proc",
  "process/wall/processes-behind.ts": "reads /proc",
  "engine/generations.ts": "the sessions, which no command can write",
  "engine/github.ts": "the Copilot program's own settings, read at start",
  "engine/leftover-runtimes.ts": "the sessions, which no command can write",
  "engine/recover.ts": "the sessions, which no command can write",
  "engine/rehearsal/rules.ts": "rules of the home, which no command can write",
  "engine/runtime-path.ts": "the runtime's own code",
  "engine/runtime-unpack.ts": "the runtime's own code",
  "swarm/run/documents.ts": "the summary of a GitHub job, named by the job",
  "channels/http/page.ts": "IO's own page, as it was built",
  "backup/backup.ts": "the copy in a folder of its own, and a file that a person names",
  "backup/copy.ts": "writes the copy in a folder of its own",
  "backup/restore.ts": "a file that a person names, and a folder of its own",
  "cli/update.ts": "an empty file in a folder of its own",
  "cli/daemon.ts": "the output of a daemon that a person starts",
  "cli/input.ts": "a file that a person names",
  "cli/logs.ts": "the log, for the person who reads it",
  "cli/swarm-options.ts": "a plan that a person names",
};
const SDK = "@github/copilot-sdk";
const NATS = "@nats-io/";
const MAX_LINES = 400;
const MAX_FUNCTION_LINES = 120;

interface Source {
  path: string;
  room: string;
  text: string;
  lines: number;
  /** Relative imports as paths below src, others by their name. */
  imports: string[];
}

const sources = readSources();

describe("the house", () => {
  test("no room imports from a room that may not be known to it", () => {
    expect(sources.flatMap(forbiddenImports)).toEqual([]);
  });

  test("only the engine knows the Copilot SDK", () => {
    const others = sources.filter(({ room, imports }) => room !== "engine" && imports.some((name) => name.startsWith(SDK)));
    expect(others.map(({ path }) => `src/${path} imports ${SDK}: only src/engine may.`)).toEqual([]);
  });

  test("only dispatch/nats knows the client of NATS, and nothing is loaded of it before it is needed", () => {
    const others = sources.filter(({ path }) => !path.startsWith("dispatch/nats/"));
    const knows = ({ text }: Source) => /^(?:import|export) (?!type\b)[^;]*from "@nats-io\//m.test(text);
    expect(others.filter(knows).map(({ path }) => path)).toEqual([]);
    // The room of the cluster is itself loaded when there is one, and so is what the doctor finds of it.
    const isLate = ({ room, path }: Source) => room === "cluster" || path === "daemon/cluster-finding.ts";
    const loads = (source: Source) => !isLate(source) && /^import (?!type\b)[^;]*\/nats\/[^;]*";/m.test(source.text);
    expect(others.filter(loads).map(({ path }) => path)).toEqual([]);
    expect(sources.filter(({ imports }) => imports.some((name) => name.startsWith(NATS))).length).toBeGreaterThan(3);
  });

  test("only the runner of git starts git", () => {
    const named = sources.filter(({ text }) => /\bfind\("git"\)/.test(text));
    // The doctor asks for no more than its version.
    expect(named.map(({ path }) => path).sort()).toEqual(["daemon/core.ts", "daemon/doctor.ts"]);
    const makers = sources.filter(({ text }) => /\bcreateGit\(\{/.test(text)).map(({ path }) => path);
    expect(makers.sort()).toEqual(["daemon/core.ts", "git/command.ts"]);
  });

  test("no program is started by a name that would be looked up anew", () => {
    expect(sources.flatMap(bareNames)).toEqual([]);
  });

  test("files are opened through lib/pinned, but for those that only IO or a person can have put there", () => {
    expect(sources.flatMap(openings)).toEqual([]);
    const idle = Object.keys(MAY_OPEN).filter((path) => opensIn(sources.find((source) => source.path === path)).length === 0);
    expect(idle).toEqual([]);
  });

  test("the page takes types from the protocol and nothing else from src", () => {
    const page = join(packageRoot, "web", "src");
    const files = readdirSync(page, { recursive: true, encoding: "utf8" }).filter((name) => /\.(?:ts|vue)$/.test(name));
    const taken = files.flatMap((name) =>
      [...readFileSync(join(page, name), "utf8").matchAll(/^import (type )?[^;]*?"((?:\.\.\/)+src\/[^"]+)";$/gm)].map(
        ([, type = "", from]) => `${type}${from?.replace(/^(?:\.\.\/)+/, "")}`,
      ),
    );
    expect(taken.length).toBeGreaterThan(10);
    expect(taken.filter((each) => !each.startsWith("type src/protocol/"))).toEqual([]);
  });

  test("no imports run in a circle", () => {
    expect(findCycle(sources)).toBeUndefined();
  });

  test(`no file of src is longer than ${MAX_LINES} lines`, () => {
    const long = sources.filter(({ lines }) => lines > MAX_LINES);
    expect(long.map(({ path, lines }) => `src/${path} has ${lines} lines: at most ${MAX_LINES} are allowed.`)).toEqual([]);
  });

  test(`no function of src is longer than ${MAX_FUNCTION_LINES} lines`, () => {
    expect(sources.flatMap(longFunctions)).toEqual([]);
  });
});

describe("the rules themselves", () => {
  const source = (path: string, ...imports: string[]): Source => ({ path, room: roomOf(path), text: "", lines: 1, imports });

  test("an import against the direction is named with its file and rule", () => {
    expect(forbiddenImports(source("store/open.ts", "orchestrator/inbox.ts"))).toEqual([
      "src/store/open.ts imports src/orchestrator/inbox.ts: store may import only lib, protocol.",
    ]);
  });

  test("a program that is started by its bare name is named, one by its path is not", () => {
    const text = 'await exec("git", []); wrap(["gh", "x"], cwd); exec("/bin/ps", []); pattern.exec(text);';
    expect(bareNames({ ...source("lib/start.ts"), text })).toEqual(
      ["git", "gh"].map((name) => `src/lib/start.ts starts "${name}" by its bare name.`),
    );
  });

  test("a room that is not in the table is named", () => {
    expect(forbiddenImports(source("attic/box.ts", "lib/ids.ts"))).toEqual([
      "src/attic/box.ts: the room attic is not in the table of test/architecture.test.ts.",
    ]);
  });

  test("a way around lib/pinned is named, however it is imported", () => {
    const ways = [
      'import { existsSync, readFileSync } from "node:fs";',
      'import { open as begin } from "node:fs/promises";',
      'import * as fs from "node:fs";',
      'import fs, { statSync } from "fs";',
      'const { cp } = await import("node:fs/promises");',
    ];
    const found = ways.map((text) => openings({ ...source("wiki/new.ts"), text }).join());
    expect(found.map((line) => /opens files by ([\w*]+)/.exec(line)?.[1])).toEqual([
      "readFileSync",
      "open",
      "*",
      "default",
      "import",
    ]);
    expect(openings({ ...source("wiki/new.ts"), text: 'import { lstatSync, type Stats } from "node:fs";' })).toEqual([]);
  });

  test("a circle is found through several files", () => {
    const circle = [source("a/x.ts", "b/y.ts"), source("b/y.ts", "c/z.ts"), source("c/z.ts", "a/x.ts")];
    expect(findCycle(circle)).toBe("a/x.ts -> b/y.ts -> c/z.ts -> a/x.ts");
  });

  test("a long function is named with its file and length, whichever way it is written", () => {
    const body = "\n".repeat(MAX_FUNCTION_LINES);
    const text = [
      `export function plain() {${body}}`,
      `const arrow = () => {${body}};`,
      `class Thing {\n  method() {${body}}\n}`,
      `const made = { member: function () {${body}} };`,
      "function short() {}",
    ].join("\n");
    const length = MAX_FUNCTION_LINES + 1;
    expect(longFunctions({ ...source("lib/long.ts"), text })).toEqual(
      ["plain", "arrow", "method", "member"].map(
        (name) => `src/lib/long.ts: ${name} has ${length} lines: at most ${MAX_FUNCTION_LINES} are allowed.`,
      ),
    );
  });
});

/** Programs come from src/process/programs.ts, as absolute paths. */
function bareNames({ path, text }: Source): string[] {
  const started = [
    ...text.matchAll(/(?<!\.)\b(?:exec|execFile|execSync|execFileSync|spawn|spawnSync|wrap)\(\s*\[?"([\w.-]+)"\s*,/g),
  ];
  return started.map((match) => `src/${path} starts "${match[1]}" by its bare name.`);
}

function forbiddenImports({ path, room, imports }: Source): string[] {
  const own = MAY_IMPORT[room];
  if (!own) return [`src/${path}: the room ${room} is not in the table of test/architecture.test.ts.`];
  const allowed = room === "lib" ? [] : [...OPEN_TO_ALL.filter((each) => each !== room), ...own];
  return imports
    .filter((name) => name.endsWith(".ts"))
    .filter((name) => roomOf(name) !== room && !allowed.includes(roomOf(name)))
    .map((name) => `src/${path} imports src/${name}: ${room} may import only ${allowed.join(", ") || "from itself"}.`);
}

function openings(source: Source): string[] {
  if (MAY_OPEN[source.path]) return [];
  return opensIn(source).map((name) => `src/${source.path} opens files by ${name}: use lib/pinned, or say in MAY_OPEN why not.`);
}

/** The functions by which a file opens others. */
function opensIn(source: Source | undefined): string[] {
  const text = source?.text ?? "";
  const named = [...text.matchAll(/\bimport\s+(?:type\s+)?([^;"']*?)\s+from\s+["'](?:node:)?fs(?:\/promises)?["']/g)].flatMap(
    ([, what = ""]) => {
      if (what.includes("*")) return ["*"];
      const [, first, list = ""] = /^(\w+)?,?\s*(?:\{([^}]*)\})?$/s.exec(what.trim()) ?? [];
      const names = list.split(",").map((each) => each.trim().split(/\s+as\s+/)[0]!);
      return [...(first ? ["default"] : []), ...names].filter((name) => OPENING.test(name));
    },
  );
  return /\b(?:import|require)\(\s*["'](?:node:)?fs(?:\/promises)?["']/.test(text) ? [...named, "import"] : named;
}

/** A function counts with everything inside it, from its first line to its last. */
function longFunctions({ path, text }: Source): string[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const lineOf = (position: number) => file.getLineAndCharacterOfPosition(position).line;
  const visit = (node: ts.Node): string[] => {
    const inner: string[] = [];
    ts.forEachChild(node, (child) => void inner.push(...visit(child)));
    if (!ts.isFunctionLike(node) || !("body" in node)) return inner;
    const lines = lineOf(node.end) - lineOf(node.getStart(file)) + 1;
    if (lines <= MAX_FUNCTION_LINES) return inner;
    return [`src/${path}: ${nameOf(node)} has ${lines} lines: at most ${MAX_FUNCTION_LINES} are allowed.`, ...inner];
  };
  return visit(file);
}

/** A function's own name, or that of what it is given to. */
function nameOf(node: ts.SignatureDeclaration): string {
  if (node.name) return node.name.getText();
  const { parent } = node;
  const isNamed = ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) || ts.isPropertyDeclaration(parent);
  return isNamed ? parent.name.getText() : "a function without a name";
}

function findCycle(all: readonly Source[]): string | undefined {
  const byPath = new Map(all.map((source) => [source.path, source]));
  const finished = new Set<string>();
  const visit = (path: string, trail: readonly string[]): string | undefined => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path].join(" -> ");
    if (finished.has(path)) return undefined;
    for (const next of byPath.get(path)?.imports ?? []) {
      const cycle = byPath.has(next) ? visit(next, [...trail, path]) : undefined;
      if (cycle) return cycle;
    }
    finished.add(path);
    return undefined;
  };
  for (const { path } of all) {
    const cycle = visit(path, []);
    if (cycle) return cycle;
  }
  return undefined;
}

/** The folder directly below src, or the file itself if it stands there. */
function roomOf(path: string): string {
  return path.split("/")[0]!;
}

function readSources(): Source[] {
  const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  return files.map((name) => {
    const path = name.split(sep).join("/");
    const text = readFileSync(join(src, name), "utf8");
    const found = [...text.matchAll(/(?:\bfrom\s+|\bimport\s+|\bimport\(\s*)["']([^"']+)["']/g)].map((match) => match[1]!);
    const imports = found.map((given) =>
      given.startsWith(".")
        ? relative(src, resolve(src, dirname(name), given))
            .split(sep)
            .join("/")
        : given,
    );
    return { path, room: roomOf(path), text, lines: text.split("\n").length - 1, imports };
  });
}
