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
  squads: ["store", "engine", "process", "shell", "git", "project", "tools"],
  swarm: ["store", "engine", "process", "git", "project", "tools"],
  orchestrator: ["store", "engine", "squads", "swarm"],
  channels: ["store", "engine", "tools", "wiki", "skills", "squads", "swarm", "orchestrator"],
  daemon: [
    ...["store", "engine", "process", "git", "project", "tools", "wiki", "skills", "squads", "swarm", "orchestrator", "channels"],
  ],
  client: [],
  tui: ["client"],
  cli: ["store", "engine", "process", "swarm", "daemon", "client", "tui"],
};
const OPEN_TO_ALL = ["lib", "protocol"];
const SDK = "@github/copilot-sdk";
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

  test("only the runner of git starts git", () => {
    const starters = sources.filter(({ path }) =>
      /\b(?:exec|spawn|wrap)\w*\(\s*\[?"git"/.test(readFileSync(join(src, path), "utf8")),
    );
    expect(starters.map(({ path }) => path)).toEqual(["git/command.ts"]);
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

  test("a room that is not in the table is named", () => {
    expect(forbiddenImports(source("attic/box.ts", "lib/ids.ts"))).toEqual([
      "src/attic/box.ts: the room attic is not in the table of test/architecture.test.ts.",
    ]);
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

function forbiddenImports({ path, room, imports }: Source): string[] {
  const own = MAY_IMPORT[room];
  if (!own) return [`src/${path}: the room ${room} is not in the table of test/architecture.test.ts.`];
  const allowed = room === "lib" ? [] : [...OPEN_TO_ALL.filter((each) => each !== room), ...own];
  return imports
    .filter((name) => name.endsWith(".ts"))
    .filter((name) => roomOf(name) !== room && !allowed.includes(roomOf(name)))
    .map((name) => `src/${path} imports src/${name}: ${room} may import only ${allowed.join(", ") || "from itself"}.`);
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
