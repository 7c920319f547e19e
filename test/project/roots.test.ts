import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { UserError } from "../../src/lib/errors.ts";
import { analyzeProject } from "../../src/squads/analyze.ts";
import { testGit } from "../support/git.ts";
import { projectOf } from "../support/project.ts";

const git = testGit();
const refusalOf = (path: string) =>
  analyzeProject(git, path).then(
    () => "none",
    (error: unknown) => error,
  );

test.each([
  "/",
  "/proc",
  "/proc/self",
  "/proc/1/",
  "/sys",
  "/sys/kernel",
  "/dev",
  "/dev/pts",
  "/etc",
  "/usr",
  "/var",
  "/home",
  "/tmp",
])("%s is refused with a sentence that says what to do", async (path) => {
  const error = await refusalOf(path);
  expect(error).toBeInstanceOf(UserError);
  expect((error as UserError).message).toMatch(
    /^\S+: (?:is made by the system|belongs to the system).+\. Give the folder of one project/,
  );
});

test("so is one that is reached by a link or is a file of a device", async () => {
  const root = projectOf({});
  execFileSync("ln", ["-s", "/proc", join(root, "proc")]);
  expect(String(await refusalOf(join(root, "proc")))).toMatch(/not a project/);
  expect(String(await refusalOf("/dev/null"))).toMatch(/is not a folder. Give the path of a project's folder/);
});

test("a home is refused, a project below it is not, nor a home that is a repository of its own", async () => {
  const home = projectOf({ "app/a.ts": "x\n", "b.ts": "x\n" });
  vi.stubEnv("HOME", home);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(String(await refusalOf(home))).toMatch(
    /: is a home, and holds more than a project\. Give the folder of one project, such as /,
  );
  expect((await analyzeProject(git, join(home, "app"))).size.files).toBe(1);
  execFileSync("git", ["init", "-q"], { cwd: home });
  expect((await analyzeProject(git, home)).size.files).toBe(2);
  mkdirSync(join(home, "empty"));
  expect((await analyzeProject(git, join(home, "empty"))).size.files).toBe(0);
});
