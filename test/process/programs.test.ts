import {
  chmodSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findPrograms, lastingPath } from "../../src/process/programs.ts";
import { temporaryFolder } from "../support/home.ts";

function program(folder: string, name: string, text = "#!/bin/sh\nexit 0\n"): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), text);
  chmodSync(join(folder, name), 0o755);
  return join(folder, name);
}
const root = () => realpathSync(temporaryFolder());
const find = (PATH: string, closed: string[] = []) => findPrograms({ env: { PATH }, closed });

test("folders that others can write are skipped, and the reason is reported", () => {
  const folder = root();
  const good = program(join(folder, "good"), "git");
  const open = join(folder, "open");
  program(open, "git");
  chmodSync(open, 0o777);
  program(join(folder, "data", "bin"), "git");
  program(join(folder, "p", "node_modules", ".bin"), "git");
  const bad = ["", "bin", open, join(folder, "data", "bin"), join(folder, "p", "node_modules", ".bin")].join(":");
  const closed = [join(folder, "data")];
  expect(find(`${bad}:${join(folder, "good")}`, closed).find("git")).toEqual({ path: good });
  const { path, why } = { path: undefined, why: "", ...find(bad, closed).find("git") };
  expect(path).toBeUndefined();
  for (const reason of ["anybody can write there", "others put files there", "belongs to a project"])
    expect(why).toContain(reason);
});

test("a link into a folder that others can write is not used, nor is a folder or a world-writable file", () => {
  const folder = root();
  program(join(folder, "data"), "git");
  mkdirSync(join(folder, "links"));
  symlinkSync(join(folder, "data", "git"), join(folder, "links", "git"));
  expect(find(join(folder, "links"), [join(folder, "data")]).find("git").path).toBeUndefined();
  mkdirSync(join(folder, "odd", "git"), { recursive: true });
  chmodSync(program(join(folder, "loose"), "git"), 0o777);
  expect(find(`${join(folder, "odd")}:${join(folder, "loose")}`).find("git").path).toBeUndefined();
});

test.each([
  ["written anew", (file: string) => writeFileSync(file, "#!/bin/sh\necho other\n")],
  ["replaced by another file", (file: string) => renameSync(program(`${file}-dir`, "other"), file)],
  [
    "changed to the same length and given its old time back",
    (file: string) => {
      const { atime, mtime } = statSync(file);
      writeFileSync(file, readFileSync(file, "utf8").replace("exit 0", "exit 1"));
      utimesSync(file, atime, mtime);
    },
  ],
  [
    "moved away with its folder",
    (file: string) => {
      const folder = join(file, "..");
      renameSync(folder, `${folder}-old`);
      program(folder, "git");
    },
  ],
])("a program that was %s after the start is not started, with a sentence that says what to do", (_, change) => {
  const file = program(join(root(), "bin"), "git");
  const programs = find(join(file, ".."));
  expect(programs.find("git")).toEqual({ path: file });
  change(file);
  expect(programs.find("git")).toEqual({ why: expect.stringMatching(/not the file that it was when IO started.*io restart/) });
});

test("a program that appears earlier in PATH after the start is ignored", () => {
  const folder = root();
  const file = program(join(folder, "late"), "gh");
  mkdirSync(join(folder, "early"));
  const programs = find(`${join(folder, "early")}:${join(folder, "late")}`);
  program(join(folder, "early"), "gh");
  expect(programs.find("gh")).toEqual({ path: file });
});

test("a program with another file name is started through its link, which is checked too", () => {
  const folder = root();
  const tool = program(join(folder, "opt"), "multicall");
  mkdirSync(join(folder, "bin"));
  symlinkSync(tool, join(folder, "bin", "gh"));
  symlinkSync(program(join(folder, "lib"), "npm-cli.js"), join(folder, "bin", "npm"));
  const programs = find(join(folder, "bin"));
  expect(programs.find("gh")).toEqual({ path: join(folder, "bin", "gh") });
  expect(programs.find("npm")).toEqual({ path: join(folder, "lib", "npm-cli.js") });
  renameSync(join(folder, "bin", "npm"), join(folder, "bin", "gh"));
  expect(programs.find("gh").path).toBeUndefined();
});

test("the runtime's PATH contains no folder that a command could write", () => {
  const folder = root();
  program(join(folder, "bin"), "git");
  const path = lastingPath({ PATH: `bin::${join(folder, "bin")}:/usr/bin:/nowhere`, HOME: folder });
  expect(path).toBe("/usr/bin");
});
