import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../src/lib/package-root.ts";
import { temporaryFolder } from "./support/home.ts";

const CHANGELOG = "# Changelog\n\n## Unreleased\n\n- A new thing, for $1 & more.\n\n## 1.2.3 (2026-01-01)\n\n- An old thing.\n";

/** A small checkout with a gate, on main, without uncommitted changes. */
function checkout({ gate = "exit 0", changelog = CHANGELOG, files = {} as Record<string, string> } = {}) {
  const folder = temporaryFolder();
  const env = { ...process.env, HOME: folder, npm_config_cache: join(folder, ".npm"), npm_config_update_notifier: "false" };
  const run = (program: string, ...args: string[]) => spawnSync(program, args, { cwd: folder, encoding: "utf8", env });
  const git = (...args: string[]) => run("git", ...args).stdout.trim();
  const manifest = { name: "small", version: "1.2.3", files: ["index.js"], ...JSON.parse(files["package.json"] ?? "{}") };
  mkdirSync(join(folder, ".ci"));
  const lock = { name: "small", version: "1.2.3", lockfileVersion: 3, packages: { "": { name: "small", version: "1.2.3" } } };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify(lock));
  writeFileSync(join(folder, "index.js"), "export default 1;\n");
  writeFileSync(join(folder, "CHANGELOG.md"), changelog);
  writeFileSync(join(folder, ".gitignore"), "*.tgz\n.npm\n.gitconfig\n");
  writeFileSync(join(folder, ".ci", "run"), `#!/bin/sh\n${gate}\n`);
  chmodSync(join(folder, ".ci", "run"), 0o755);
  git("init", "--quiet", "--initial-branch=main");
  git("config", "user.name", "Somebody");
  git("config", "user.email", "somebody@localhost");
  git("add", "--all");
  git("commit", "--quiet", "--message", "feat: a small thing");
  const release = (...args: string[]) => run(process.execPath, join(packageRoot, "scripts", "release.js"), ...args);
  const read = (name: string) => readFileSync(join(folder, name), "utf8");
  return { folder, git, release, read };
}

test("a release has the next version, a dated changelog, a package and a tag, and leaves the checkout clean", () => {
  const { folder, git, release, read } = checkout({ gate: "test ! -e small-1.3.0.tgz && echo the gate ran" });
  const { status, stdout } = release("minor");
  expect(status).toBe(0);
  expect(stdout).toContain("the gate ran");
  expect(stdout).toContain("git push origin main v1.3.0");
  expect(JSON.parse(read("package.json")).version).toBe("1.3.0");
  expect(JSON.parse(read("package-lock.json")).packages[""].version).toBe("1.3.0");
  const day = new Date().toISOString().slice(0, 10);
  expect(read("CHANGELOG.md")).toBe(CHANGELOG.replace("## Unreleased\n\n", () => `## Unreleased\n\n## 1.3.0 (${day})\n\n`));
  expect(existsSync(join(folder, "small-1.3.0.tgz"))).toBe(true);
  expect(git("log", "-1", "--format=%s")).toBe("chore(release): 1.3.0");
  expect(git("rev-list", "-1", "v1.3.0")).toBe(git("rev-parse", "HEAD"));
  expect(git("tag", "--list", "-n5", "v1.3.0")).toContain("- A new thing, for $1 & more.");
  expect(git("status", "--porcelain")).toBe("");
});

test("a dry run says what would be released, and does nothing", () => {
  const { git, release } = checkout({ gate: "exit 1" });
  const before = git("rev-parse", "HEAD");
  const { status, stdout } = release("2.0.0", "--dry-run");
  expect(status).toBe(0);
  expect(stdout).toContain("v2.0.0 would be made");
  expect(stdout).toContain("- A new thing");
  expect(stdout).not.toContain("An old thing");
  expect([git("rev-parse", "HEAD"), git("tag"), git("status", "--porcelain")]).toEqual([before, "", ""]);
});

test.each([
  ["a gate that is red", () => checkout({ gate: "exit 1" }), ["patch"], /\.ci\/run failed \(exit 1\)/],
  ["a gate that leaves files behind", () => checkout({ gate: "touch left" }), ["patch"], /the gate changed files/],
  ["no changes", () => checkout({ changelog: "# Changelog\n\n## Unreleased\n" }), ["patch"], /nothing under Unreleased/],
  ["no version", () => checkout(), ["next"], /say which version: .*"next" is none/],
  [
    "a package that cannot be made",
    () => checkout({ files: { "package.json": JSON.stringify({ scripts: { prepare: "exit 3" } }) } }),
    ["patch"],
    /npm pack --json failed/,
  ],
])("%s is no release, and nothing is left of it", (_, make, args, message) => {
  const { git, release } = make();
  const before = git("rev-parse", "HEAD");
  const { status, stderr } = release(...args);
  expect(status).toBe(1);
  expect(stderr).toMatch(message);
  expect([git("rev-parse", "HEAD"), git("tag"), git("diff", "--stat")]).toEqual([before, "", ""]);
});

test("uncommitted work, another branch and a version that is out already are refused before the gate", () => {
  const { folder, git, release } = checkout({ gate: "echo the gate ran" });
  writeFileSync(join(folder, "index.js"), "export default 2;\n");
  expect(release("patch")).toMatchObject({ status: 1, stderr: expect.stringContaining("not clean") });
  git("checkout", "--quiet", "--", "index.js");
  git("tag", "v1.2.4");
  expect(release("patch")).toMatchObject({ status: 1, stderr: expect.stringContaining("there is a v1.2.4 already") });
  git("checkout", "--quiet", "-b", "work");
  const refused = release("minor");
  expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining("a release is made on main, and this is work") });
  expect(refused.stdout).not.toContain("the gate ran");
});
