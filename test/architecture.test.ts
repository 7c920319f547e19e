import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import ts from "typescript";
import { describe, expect, test } from "vitest";
import { packageRoot } from "../src/lib/package-root.ts";

const src = join(packageRoot, "src");

/**
 * The rooms, which are the top-level folders of src, from the bottom up, and what each may import besides itself. All may
 * import `lib`, `home` and `protocol`.
 */
const MAY_IMPORT: Record<string, readonly string[]> = {
  lib: [],
  home: [],
  protocol: [],
  store: [],
  process: [],
  shell: [],
  engine: ["process"],
  git: ["process"],
  project: ["process", "shell", "git"],
  tools: ["store", "process", "shell"],
  wiki: ["store", "tools"],
  schedules: ["store", "tools"],
  news: ["store", "tools"],
  skills: ["store", "process", "shell", "git", "tools"],
  undo: ["store", "process", "git", "tools"],
  forge: ["store", "process", "git", "tools"],
  mcp: ["store", "process", "tools"],
  workers: ["store", "engine", "process", "git", "project", "tools"],
  squads: ["store", "workers", "engine", "process", "shell", "git", "project", "tools"],
  swarm: ["store", "workers", "engine", "process", "git", "project", "tools"],
  orchestrator: ["store", "engine", "project", "undo", "squads", "swarm"],
  channels: [
    "store",
    "engine",
    "tools",
    "wiki",
    "skills",
    "schedules",
    "news",
    "forge",
    "mcp",
    "squads",
    "swarm",
    "orchestrator",
  ],
  daemon: [
    ...["store", "workers", "engine", "process", "git", "project", "tools", "undo", "wiki", "skills"],
    ...["schedules", "news", "forge", "mcp", "squads", "swarm", "orchestrator", "channels"],
  ],
  backup: ["store"],
  client: [],
  tui: ["client"],
  cli: ["store", "engine", "process", "tools", "swarm", "workers", "daemon", "backup", "client", "tui"],
};
const OPEN_TO_ALL = ["lib", "home", "protocol"];

/** Functions that open a file by its path, so a link could redirect them and a pipe could block them. */
const OPENING =
  /^(?:readFile|writeFile|appendFile|open|copyFile|cp)(?:Sync)?$|^(?:openAsBlob|createReadStream|createWriteStream|default)$/;
/** Files that may open files by other means than `lib/pinned`, and why nobody else can have replaced what they open. */
const MAY_OPEN: Record<string, string> = {
  "lib/pinned/folder.ts": "opens folders for all others",
  "lib/pinned/read.ts": "opens files for all others",
  "lib/pinned/write.ts": "opens files for all others",
  "workers/jobs/nats/blob-store.ts": "files of the cluster's folder, which no command can write, by names of IO's own",
  "lib/alive.ts": "reads /proc",
  "home/api-token.ts": "the token, which no command can write",
  "home/config.ts": "config.json, which no command can write",
  "home/daemon-file.ts": "daemon.json, which no command can write",
  "lib/stack.ts": "IO's own code",
  "lib/version.ts": "IO's own code",
  "store/flusher.ts": "the database's own log, which no command can write",
  "store/lock.ts": "reads /proc",
  "process/exec.ts": "a file that the caller names, made before the program starts",
  "process/leftover-processes.ts": "reads /proc",
  "process/wall/probe.ts": "a folder of its own, before any command runs",
  "process/wall/caches.ts": "makes cargo's lock files where there are none, in a folder that no command can write",
  "process/wall/connection-judge.ts": "reads /proc",
  "process/wall/other-mounts.ts": "reads /proc",
  "process/wall/sandboxed-processes.ts": "reads /proc",
  "process/wall/temporary.ts": "makes empty files where there are none",
  "engine/sessions/generations.ts": "the sessions, which no command can write",
  "engine/models/github.ts": "the Copilot program's own settings, read at start",
  "engine/runtime/leftovers.ts": "the sessions, which no command can write",
  "engine/sessions/pictures.ts": "the sessions, which no command can write",
  "engine/sessions/recover.ts": "the sessions, which no command can write",
  "engine/rehearsal/rules.ts": "rules of the home, which no command can write",
  "engine/runtime/path.ts": "the runtime's own code",
  "engine/runtime/unpack.ts": "the runtime's own code",
  "engine/runtime/hashes.ts": "the runtime's own code",
  "git/copy-tree.ts": "writes the copy in a folder of its own",
  "swarm/context/documents.ts": "the summary of a GitHub job, named by the job",
  "channels/http/page.ts": "IO's own page, as it was built",
  "channels/http/server.ts": "openapi.json, as it was built",
  "backup/backup.ts": "the copy in a folder of its own, and a file that a person names",
  "backup/copy.ts": "writes the copy in a folder of its own",
  "backup/restore.ts": "a file that a person names, and a folder of its own",
  "cli/update.ts": "an empty file in a folder of its own",
  "cli/daemon.ts": "the output of a daemon that a person starts",
  "cli/input.ts": "a file that a person names",
  "cli/logs.ts": "the log, for the person who reads it",
  "cli/swarm-options.ts": "a plan that a person names",
};
/** Files that may open a database, and which one. All others are clients of the daemon. */
const MAY_OPEN_DATABASE: Record<string, string> = {
  "store/open.ts": "io.db, for whoever holds the lock of its data folder",
  "store/digest.ts": "io.db, to read, in a thread of its own",
  "store/integrity.ts": "io.db, to read whether it is whole, in a thread of its own",
  "store/snapshot.ts": "io.db, to copy it for a backup, and the copy",
  "store/lock.ts": "the lock itself",
  "store/usage-aside.ts": "io.db, for what the doctor and setup used",
  "daemon/squad-folders.ts": "io.db, to read, for the doctor",
  "daemon/telegram-finding.ts": "io.db, to read, for the doctor",
  "daemon/connection-findings.ts": "io.db, to read, for the doctor",
  "backup/restore.ts": "io.db of a home that nobody uses, before it is put aside",
  "wiki/index-file.ts": "the wiki's index, which can be made anew",
};
/** Files that open the store: for the daemon and a worker, and for a command that has taken over the data folder. */
const MAY_OPEN_STORE = ["daemon/core.ts", "daemon/own-home.ts", "store/usage-aside.ts"];
const SDK = "@github/copilot-sdk";
const NATS = "@nats-io/";
const MAX_LINES = 400;
const MAX_FUNCTION_LINES = 120;

interface Source {
  path: string;
  room: string;
  text: string;
  lines: number;
  /** Relative imports as paths, others by name. */
  imports: string[];
}

const sources = readSources(src, "");

describe("the house", () => {
  test("no room imports from a room that may not be known to it", () => {
    expect(sources.flatMap(forbiddenImports)).toEqual([]);
  });

  test("only the engine knows the Copilot SDK", () => {
    const others = sources.filter(({ room, imports }) => room !== "engine" && imports.some((name) => name.startsWith(SDK)));
    expect(others.map(({ path }) => `src/${path} imports ${SDK}: only src/engine may.`)).toEqual([]);
  });

  test("only the owner of a data folder opens its database", () => {
    const opening = sources.filter(({ text }) => /\bnew DatabaseSync\(/.test(text)).map(({ path }) => path);
    expect(opening.sort()).toEqual(Object.keys(MAY_OPEN_DATABASE).sort());
    const stores = sources.filter(({ text }) => /(?<!function )\bopenStore\(/.test(text)).map(({ path }) => path);
    expect(stores.sort()).toEqual(MAY_OPEN_STORE);
    const locked = MAY_OPEN_STORE.filter((path) => path !== "daemon/core.ts");
    for (const path of locked) expect(sources.find((source) => source.path === path)?.text).toMatch(/\btakeLock\(/);
  });

  test("only workers/jobs/nats knows the client of NATS, and nothing is loaded of it before it is needed", () => {
    const others = sources.filter(({ path }) => !path.startsWith("workers/jobs/nats/"));
    const knows = ({ text }: Source) => /^(?:import|export) (?!type\b)[^;]*from "@nats-io\//m.test(text);
    expect(others.filter(knows).map(({ path }) => path)).toEqual([]);
    // The cluster folder itself is loaded only if there is a cluster, and so is the doctor's finding about it.
    const isLate = ({ path }: Source) => path.startsWith("workers/cluster/") || path === "daemon/cluster-finding.ts";
    const loads = (source: Source) => !isLate(source) && /^import (?!type\b)[^;]*\/nats\/[^;]*";/m.test(source.text);
    expect(others.filter(loads).map(({ path }) => path)).toEqual([]);
    expect(sources.filter(({ imports }) => imports.some((name) => name.startsWith(NATS))).length).toBeGreaterThan(3);
  });

  test("only the runner of git starts git", () => {
    const named = sources.filter(({ text }) => /\bfind\("git"\)/.test(text));
    // The doctor only asks for git's version.
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

  test("the page takes types from the protocol, what decides how states are shown, and nothing else from src", () => {
    const page = join(packageRoot, "web", "src");
    const files = readdirSync(page, { recursive: true, encoding: "utf8" }).filter((name) => /\.(?:ts|vue)$/.test(name));
    const taken = files.flatMap((name) =>
      [...readFileSync(join(page, name), "utf8").matchAll(/^import (type )?[^;]*?"((?:\.\.\/)+src\/[^"]+)";$/gm)].map(
        ([, type = "", from]) => `${type}${from?.replace(/^(?:\.\.\/)+/, "")}`,
      ),
    );
    expect(taken.length).toBeGreaterThan(10);
    const shared = [
      "src/home/mode-words.ts",
      "src/protocol/call-summary.ts",
      "src/protocol/check-words.ts",
      "src/home/own-command.ts",
      "src/protocol/shown-state.ts",
      "src/protocol/tool-news.ts",
    ];
    expect(taken.filter((each) => !each.startsWith("type src/protocol/") && !shared.includes(each))).toEqual([]);
    // What it does take must not import anything else.
    for (const path of shared)
      expect(readFileSync(join(packageRoot, path), "utf8")).not.toMatch(/^import (?!type |.* "\.\/check-words\.ts")/m);
  });

  test("no imports run in a circle, in the page and the tests neither", () => {
    const all = ["src", "web/src", "test", "bench", "scripts"].flatMap((folder) => readSources(packageRoot, folder));
    expect(all.length).toBeGreaterThan(1_000);
    expect(findCycle(all)).toBeUndefined();
  });

  test("inside a room, too, folders know each other in one direction", () => {
    expect(findCycle(floorsOf(sources))).toBeUndefined();
  });

  test("no sentence holds the name of a type, as a renaming that went too far would leave it", () => {
    const names = new Set(sources.flatMap(({ text }) => [...text.matchAll(TYPE_NAME)].map(([, name]) => name!)));
    expect(names.size).toBeGreaterThan(100);
    expect(sources.flatMap((source) => namesInSentences(source, names))).toEqual([]);
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
      "src/store/open.ts imports src/orchestrator/inbox.ts: store may import only lib, home, protocol.",
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

  test("two folders of a room that know each other are found, though no files run in a circle", () => {
    const back = [source("a/x/one.ts", "a/y/two.ts"), source("a/y/three.ts", "a/x/four.ts"), source("a/port.ts", "a/x/one.ts")];
    expect(findCycle(back)).toBeUndefined();
    expect(findCycle(floorsOf(back))).toBe("a/x -> a/y -> a/x");
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

/** Programs must come from src/process/programs.ts, as absolute paths. */
function bareNames({ path, text }: Source): string[] {
  const started = [
    ...text.matchAll(/(?<!\.)\b(?:exec|execFile|execSync|execFileSync|spawn|spawnSync|wrap)\(\s*\[?"([\w.-]+)"\s*,/g),
  ];
  return started.map((match) => `src/${path} starts "${match[1]}" by its bare name.`);
}

function forbiddenImports({ path, room, imports }: Source): string[] {
  const own = MAY_IMPORT[room];
  if (!own) return [`src/${path}: the room ${room} is not in the table of test/architecture.test.ts.`];
  // The rooms that all may import may themselves import only those below them.
  const below = OPEN_TO_ALL.includes(room) ? OPEN_TO_ALL.slice(0, OPEN_TO_ALL.indexOf(room)) : OPEN_TO_ALL;
  const allowed = [...below, ...own];
  return imports
    .filter((name) => name.endsWith(".ts"))
    .filter((name) => roomOf(name) !== room && !allowed.includes(roomOf(name)))
    .map((name) => `src/${path} imports src/${name}: ${room} may import only ${allowed.join(", ") || "from itself"}.`);
}

function openings(source: Source): string[] {
  if (MAY_OPEN[source.path]) return [];
  return opensIn(source).map((name) => `src/${source.path} opens files by ${name}: use lib/pinned, or say in MAY_OPEN why not.`);
}

/** The functions with which a file opens others. */
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

/** Exported names of two words or more, which do not occur in a sentence by chance. */
const TYPE_NAME = /^export (?:type|interface|class|const) ([A-Z][a-z]+[A-Z]\w*)/gm;

function namesInSentences(source: Source, names: ReadonlySet<string>): string[] {
  return findingsIn(source, (node) => {
    const isText = ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node);
    if (!isText || !node.text.includes(" ")) return [];
    const words = (node.text.match(/\b[A-Z]\w+\b/g) ?? []).filter((word) => names.has(word));
    return words.map((word) => `src/${source.path}: "${word}" is the name of a type.`);
  });
}

/** A function's lines include everything inside it, from its first line to its last. */
function longFunctions(source: Source): string[] {
  return findingsIn(source, (node, file) => {
    if (!ts.isFunctionLike(node) || !("body" in node)) return [];
    const lineOf = (position: number) => file.getLineAndCharacterOfPosition(position).line;
    const lines = lineOf(node.end) - lineOf(node.getStart(file)) + 1;
    if (lines <= MAX_FUNCTION_LINES) return [];
    return [`src/${source.path}: ${nameOf(node)} has ${lines} lines: at most ${MAX_FUNCTION_LINES} are allowed.`];
  });
}

/** What a check finds at each node of a file. */
function findingsIn({ path, text }: Source, check: (node: ts.Node, file: ts.SourceFile) => string[]): string[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    found.push(...check(node, file));
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

/** A function's own name, or the name of what it is assigned to. */
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

/** The same imports, between the folders of each room. A file directly in a room counts as a folder of its own. */
function floorsOf(all: readonly Source[]): Source[] {
  const floors = new Map<string, Source>();
  for (const each of all) {
    const path = floorOf(each.path);
    const floor = floors.get(path) ?? { ...each, path, imports: [] };
    const within = each.imports.filter((name) => roomOf(name) === each.room).map(floorOf);
    floors.set(path, { ...floor, imports: [...floor.imports, ...within.filter((name) => name !== path)] });
  }
  return [...floors.values()];
}

const floorOf = (path: string): string => path.split("/").slice(0, 2).join("/");

/** The folder directly below src, or the file itself if it is there. */
function roomOf(path: string): string {
  return path.split("/")[0]!;
}

/** The files below a folder, with paths and relative imports as seen from `base`. */
function readSources(base: string, folder: string): Source[] {
  const files = readdirSync(join(base, folder), { recursive: true, encoding: "utf8" });
  return files
    .filter((name) => /\.(?:ts|vue|m?js)$/.test(name))
    .map((name) => {
      const file = join(base, folder, name);
      const path = relative(base, file).split(sep).join("/");
      const text = readFileSync(file, "utf8");
      const found = [...text.matchAll(/(?:\bfrom\s+|\bimport\s+|\bimport\(\s*)["']([^"']+)["']/g)].map((match) => match[1]!);
      const imports = found.map((given) =>
        given.startsWith(".")
          ? relative(base, resolve(dirname(file), given))
              .split(sep)
              .join("/")
          : given,
      );
      return { path, room: roomOf(path), text, lines: text.split("\n").length - 1, imports };
    });
}
