import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";

const read = (...path: string[]) => readFileSync(join(packageRoot, "docs", ...path), "utf8");
const page = read("reference", "security-details.md");
const short = read("security.md");
const sectionsOf = (text: string) => text.split(/^## /m).slice(1);
const testsIn = (text: string) => [...text.matchAll(/`(test\/[^`*]+)`/g)].map(([, path = ""]) => path);

test("every test that the pages on security name is there", () => {
  const named = testsIn(page + short);
  expect(testsIn(page).length).toBeGreaterThan(30);
  expect(testsIn(short).length).toBeGreaterThan(15);
  expect(named.filter((path) => !existsSync(join(packageRoot, path)))).toEqual([]);
});

test.each([
  ["in detail", page],
  ["in short", short],
])("every section of promises and every promise of the floor names what shows it, %s", (_, text) => {
  const promises = sectionsOf(text).filter((each) => !each.startsWith("What is not protected"));
  expect(promises.length).toBeGreaterThan(5);
  expect(promises.filter((each) => testsIn(each).length === 0)).toEqual([]);
  const floor = sectionsOf(text)
    .find((each) => each.startsWith("The floor"))!
    .split(/^- /m)
    .slice(1);
  expect(floor.length).toBeGreaterThan(5);
  expect(floor.filter((each) => testsIn(each).length === 0)).toEqual([]);
});

test("the short pages promise nothing that the details do not show, and are short", () => {
  expect(testsIn(short).filter((path) => !page.includes(path))).toEqual([]);
  const words = (text: string) => text.trim().split(/\s+/).length;
  expect(words(short)).toBeLessThan(1_200);
  expect(words(read("swarm.md"))).toBeLessThan(1_200);
});

test("every row of the table of promises names what shows it", () => {
  const [, rows = ""] = /\| promise \| shown by \|\n\|---\|---\|\n((?:\|.*\n)+)/.exec(page)!;
  expect(
    rows
      .trim()
      .split("\n")
      .filter((row) => testsIn(row).length === 0),
  ).toEqual([]);
});
