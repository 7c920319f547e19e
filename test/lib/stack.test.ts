import { readdirSync, readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { stackOf } from "../../src/lib/stack.ts";

const dist = join(packageRoot, "dist");
const bundles = readdirSync(dist).filter((name) => name.endsWith(".js"));

/** A stack with a frame at the start, in the middle and at the end of some lines of a file of the bundle. */
function framesOf(name: string): { line: number; column: number }[] {
  const lines = readFileSync(join(dist, name), "utf8").split("\n");
  const every = Math.ceil(lines.length / 20);
  return lines.flatMap((text, line) =>
    line % every ? [] : [0, text.length >> 1, Math.max(0, text.length - 1)].map((column) => ({ line, column })),
  );
}

test("a stack names the files of src as Node's own source maps do", () => {
  let named = 0;
  for (const name of bundles) {
    const url = pathToFileURL(join(dist, name)).href;
    const map = new SourceMap(JSON.parse(readFileSync(join(dist, `${name}.map`), "utf8")));
    const frames = framesOf(name);
    const error = new Error("lost");
    error.stack = frames.map(({ line, column }) => `    at run (${url}:${line + 1}:${column + 1})`).join("\n");
    const expected = frames.map(({ line, column }) => {
      const entry = map.findEntry(line, column);
      // Node takes the end of an earlier line where a line has no mapping.
      if (!("originalSource" in entry) || entry.generatedLine !== line) return `    at run (${url}:${line + 1}:${column + 1})`;
      named += 1;
      const source = entry.originalSource.replace(/^(?:\.\.\/)+/, "");
      return `    at run (${source}:${entry.originalLine + 1}:${entry.originalColumn + 1})`;
    });
    expect(stackOf(error)?.split("\n")).toEqual(expected);
  }
  expect(named).toBeGreaterThan(1_000);
});

test("a stack without files of the bundle stays as it is", () => {
  const error = new Error("lost");
  expect(stackOf(error)).toBe(error.stack);
});
