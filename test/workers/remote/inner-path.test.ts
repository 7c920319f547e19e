import { existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ChecksSpec, PlaceSpec, TurnSpec } from "../../../src/workers/remote/job-messages.ts";
import { innerFolder } from "../../../src/workers/remote/projects.ts";
import { temporaryFolder } from "../../support/home.ts";

const place = {
  ...{ project: "0123456789abcdef", commit: "a".repeat(40), prefix: "packages/web" },
  ...{ cwd: "/home/u/p/packages/web", projectPath: "/home/u/p/packages/web", access: "write", height: null, installed: [] },
};
const OUTSIDE = [
  "..",
  "../x",
  "a/../../x",
  "/etc",
  "a//b",
  "a/",
  ".git",
  "a/.git/hooks",
  ".GIT",
  "./a",
  "a/.",
  "a\0b",
  "a\\..\\b",
];

test("a job names no folder outside of its worktree, in its place, its checks and what it has installed", () => {
  expect(PlaceSpec.safeParse(place).success).toBe(true);
  for (const path of OUTSIDE) {
    expect(PlaceSpec.safeParse({ ...place, prefix: path }).success, path).toBe(false);
    expect(PlaceSpec.safeParse({ ...place, installed: [path] }).success, path).toBe(false);
    const checks = { owner: "x", place, checks: [{ command: "true", cwd: path }], deadlineMs: 1 };
    expect(ChecksSpec.safeParse(checks).success, path).toBe(false);
  }
  for (const [key, value] of [
    ["project", "../../x"],
    ["commit", "--all"],
    ["cwd", "relative"],
    ["height", "none"],
  ] as const)
    expect(PlaceSpec.safeParse({ ...place, [key]: value }).success, key).toBe(false);
  const turn = { owner: "x", place, prompt: "", model: null, tools: [], essential: null, lasting: false, limited: false };
  const whole = { ...turn, silenceMs: 1, capMs: 1, spender: null };
  expect(TurnSpec.safeParse({ ...whole, session: "s.1" }).success).toBe(true);
  for (const session of ["..", "../x", ".", "a/b", ""]) expect(TurnSpec.safeParse({ ...whole, session }).success).toBe(false);
});

test("a folder behind a link of the repository is not worked in, and nothing is made where it leads", () => {
  const [top, outside] = [temporaryFolder(), temporaryFolder()];
  mkdirSync(join(top, "real", "inner"), { recursive: true });
  symlinkSync(outside, join(top, "packages"));
  symlinkSync(join(top, "real"), join(top, "near"));
  symlinkSync(join(outside, "missing"), join(top, "dangling"));
  expect(innerFolder(top, "real/inner")).toBe(join(top, "real/inner"));
  expect(innerFolder(top, "")).toBe(top);
  expect(innerFolder(top, ".")).toBe(top);
  expect(innerFolder(top, "real/new")).toBe(join(top, "real/new"));
  expect(existsSync(join(top, "real/new"))).toBe(true);
  for (const inner of ["packages", "packages/web", "near/inner", "dangling", "../x", "/etc", ".git"])
    expect(() => innerFolder(top, inner), inner).toThrow();
  expect(readdirSync(outside)).toEqual([]);
});
