import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { realOf } from "../../src/lib/real-path.ts";
import { temporaryFolder } from "../support/home.ts";

test("a path resolves as the system does, even if its end, its middle or a link's target is missing", () => {
  const top = temporaryFolder();
  mkdirSync(join(top, "a", "b"), { recursive: true });
  writeFileSync(join(top, "file"), "");
  for (const [target, name] of [
    ["a", "to-a"],
    ["../..", "a/b/up"],
    [join(top, "missing"), "to-missing"],
    ["to-missing/deeper", "to-deeper"],
    ["to-a/b", "a/chain"],
    ["file", "to-file"],
  ] as const)
    symlinkSync(target, join(top, name));
  const paths = [
    ...["a/b", "a/b/c/d", "to-a/b/x", "a/b/up/a/new", "to-missing", "to-missing/x/y", "to-deeper/z", "a/chain/up/new/er"],
    ...["file/below", "to-file/below", "none", `${"x/".repeat(300)}y`],
  ];
  for (const path of paths) {
    const spelled = join(top, path);
    expect([path, realOf(spelled)]).toEqual([path, execFileSync("realpath", ["-m", spelled], { encoding: "utf8" }).trim()]);
  }
});

test("a loop of links ends the search", () => {
  const top = temporaryFolder();
  symlinkSync("two", join(top, "one"));
  symlinkSync("one", join(top, "two"));
  expect(realOf(join(top, "one", "x"))).toContain(top);
});
