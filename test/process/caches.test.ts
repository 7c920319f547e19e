import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createCaches } from "../../src/process/wall/caches.ts";
import { temporaryFolder } from "../support/home.ts";

function ground() {
  const userHome = temporaryFolder();
  const project = temporaryFolder();
  const bin = join(userHome, "bin");
  mkdirSync(bin);
  for (const name of ["cargo", "gradle"]) {
    writeFileSync(join(bin, name), "");
    chmodSync(join(bin, name), 0o755);
  }
  const cachesOf = createCaches({ userHome, env: { PATH: bin } });
  const opened = (command: string) =>
    cachesOf({ project, argv: ["sh", "-c", command] })
      .filter(({ write }) => write)
      .map(({ path }) => path.slice(userHome.length + 1));
  return { userHome, project, opened };
}

test("caches of a program that nobody used yet are not made for commands that have nothing to do with it", () => {
  const { userHome, opened } = ground();
  expect(opened("git status && ls -la src | head -20")).toEqual([]);
  expect(existsSync(join(userHome, ".gradle"))).toBe(false);
});

test.each([
  ["the command names it", "./gradlew build", undefined, ".gradle/caches"],
  ["the project has its file", "true", "settings.gradle.kts", ".gradle/native"],
  ["the project has its file", "true", "Cargo.toml", ".cargo/registry"],
  ["the command runs a script", "./setup.sh", undefined, ".cargo/registry"],
  ["the command runs a script", "cd tools && bash setup", undefined, ".gradle/caches"],
  ["the command is a task runner", "make all", undefined, ".cargo/registry"],
])("a program's caches are made and open when %s", (_, command, file, cache) => {
  const { userHome, project, opened } = ground();
  if (file !== undefined) writeFileSync(join(project, file), "");
  expect(opened(command)).toContain(cache);
  expect(existsSync(join(userHome, cache))).toBe(true);
});

test("all caches of a program that was used are open to every command", () => {
  const { userHome, opened } = ground();
  mkdirSync(join(userHome, ".gradle/caches/modules"), { recursive: true });
  mkdirSync(join(userHome, ".m2/repository"), { recursive: true });
  expect(opened("true")).toEqual(expect.arrayContaining([".gradle/caches", ".gradle/native", ".gradle/wrapper"]));
  // Maven is neither used nor installed.
  expect(opened("true")).not.toContain(".m2/repository");
});
