import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { findWeakenedTests } from "../../src/git/weakened-tests.ts";
import { git, makeProject } from "../support/swarm/index.ts";
import { ADDITIONS } from "../support/weakenings/additions.ts";
import type { Case, Files } from "../support/weakenings/cases.ts";
import { COMPILED } from "../support/weakenings/compiled.ts";
import { PLACES } from "../support/weakenings/places.ts";
import { RUBY } from "../support/weakenings/ruby.ts";
import { SCRIPTS } from "../support/weakenings/scripts.ts";
import { SETTINGS } from "../support/weakenings/settings.ts";

const cases: readonly Case[] = [...SCRIPTS, ...COMPILED, ...RUBY, ...SETTINGS, ...ADDITIONS, ...PLACES];

/** The findings in each case. All cases are folders of one repository, which is compared folder by folder. */
function judge(): Map<string, string[]> {
  const project = makeProject({ "README.md": "" });
  const put = (files: Files, index: number) => {
    for (const [path, text] of Object.entries(files)) {
      const at = join(project, `case-${index}`, path);
      mkdirSync(dirname(at), { recursive: true });
      if (text === null) rmSync(at);
      else writeFileSync(at, text);
    }
  };
  cases.forEach(({ before }, index) => void put(before, index));
  git(project, "add", "-A", "-f");
  git(project, "commit", "-q", "-m", "before");
  cases.forEach(({ after }, index) => void put(after, index));
  git(project, "add", "-A", "-f");
  return new Map(
    cases.map(({ name }, index) => [
      name,
      findWeakenedTests(git(project, "diff", "--cached", "-M", "HEAD", "--", `case-${index}`)).map(({ what }) => what),
    ]),
  );
}

test("what skips, surrounds, ends, loosens or removes a test that was there is found, in many languages and runners", () => {
  const found = judge();
  const missed = cases.filter(({ name, isFound }) => isFound && found.get(name)?.length === 0);
  expect(missed.map(({ name }) => name)).toEqual([]);
  const blamed = cases.filter(({ name, isFound }) => !isFound && found.get(name)?.length !== 0);
  expect(blamed.map(({ name }) => [name, found.get(name)])).toEqual([]);
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
});
