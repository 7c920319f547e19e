import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { FRONTEND_WORDS } from "../../src/swarm/pipeline/conditions.ts";
import { VOCABULARIES } from "../../src/swarm/pipeline/tool-words.ts";

test("the words that make a task a frontend task are documented, all of them and no others", () => {
  const text = readFileSync(join(packageRoot, "docs", "reference", "swarm-details.md"), "utf8");
  const [, list = ""] = /^## Frontend tasks\n[\s\S]*?\n\n(`[\s\S]*?)\n\n/m.exec(text) ?? [];
  expect([...list.matchAll(/`([^`]+)`/g)].map(([, word]) => word)).toEqual([...FRONTEND_WORDS]);
});

test("the words for tools that agent files of others use are documented, all of them and no others", () => {
  const text = readFileSync(join(packageRoot, "docs", "reference", "swarm-details.md"), "utf8");
  const [, ...rows] = (/\n\| written for .*\n([\s\S]*?)\n\n/.exec(text)?.[1] ?? "").split("\n");
  const wordsIn = (cell = "") => [...cell.matchAll(/`([^`]+)`/g)].map(([, word]) => word);
  const documented = rows.map((row) => row.split(" | ")).map(([of = "", ...cells]) => [of.slice(2), ...cells.map(wordsIn)]);
  const known = VOCABULARIES.map(({ of, anyCase, rows: all, without }) => {
    const giving = (tool: string) => all.filter(({ gives }) => gives[0] === tool).flatMap(({ words }) => words);
    const cells = [giving("shell"), giving("file_ops"), giving("file_ops_read"), without];
    return [anyCase ? `${of}, in any case` : of, ...cells.map((words) => [...words])];
  });
  expect(documented).toEqual(known);
});
