import { existsSync, mkdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { type RealProject, runOn, run as sh, writeFiles } from "../support/swarm/real-project.ts";

const PACKAGE = "packages/core";
const CORE = "export const greet = () => 'hello';\n";
const BETTER = `${CORE}export const more = 1;\n`;
const BROKEN = "throw new Error('gone');\n";
const files = {
  ".gitignore": "node_modules/\n",
  "package.json": JSON.stringify({ name: "top", private: true, type: "module", workspaces: ["packages/*"] }),
  [`${PACKAGE}/package.json`]: JSON.stringify({ name: "@x/core", version: "1.0.0", type: "module", main: "src/index.js" }),
  [`${PACKAGE}/src/index.js`]: CORE,
  "packages/app/package.json": JSON.stringify({
    name: "@x/app",
    version: "1.0.0",
    type: "module",
    dependencies: { "@x/core": "1.0.0" },
  }),
  "packages/app/test/app.test.js":
    "import test from 'node:test';\nimport assert from 'node:assert';\nimport { greet } from '@x/core';\ntest('greets', () => assert.equal(greet(), 'hello'));\n",
};
const checks = [{ name: "test", command: "node --test packages/app/test/", cwd: "." }];
const npm = (project: string) => sh(project, "npm", "install", "--offline", "--no-audit", "--no-fund", "--no-package-lock");
const workspace = (text: string): RealProject => ({ files, prepare: npm, checks, writes: [`${PACKAGE}/src/index.js`, text] });

test("npm's workspaces: what works is approved, a broken import is not", async () => {
  const { run, project } = await runOn(workspace(BETTER));
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  const summary = readFileSync(join(project, "doc", "swarm-summary.md"), "utf8");
  expect(summary).toContain(`from \`${run.base!.slice(0, 12)}\``);
  expect(summary).toMatch(
    /## Issue\n\n```\nChange it\n```\n\n## Files changed\n\n```\n packages\/core\/src\/index\.js \| 1 \+\n/,
  );
  expect(summary).toContain(`Look at it: \`git diff ...${run.branch}\` · take it: \`git merge ${run.branch}\`.`);
  expect(run.evidence.at(-1)).toMatchObject({ exitCode: 0, bound: true });
  expect((await runOn(workspace(BROKEN))).run.outcome).toBe("unapproved");
});

test.each([
  ["pnpm", ["install", "--offline", "--ignore-scripts", "--lockfile=false"], "workspace:*"],
  ["yarn", ["install", "--offline", "--ignore-scripts", "--no-lockfile", "--silent"], "1.0.0"],
])("%s's workspaces: what works is approved, a broken import is not", async (manager, args, version) => {
  const app = { name: "@x/app", version: "1.0.0", type: "module", dependencies: { "@x/core": version } };
  const own = {
    ...files,
    "pnpm-workspace.yaml": 'packages:\n  - "packages/*"\n',
    "packages/app/package.json": JSON.stringify(app),
  };
  const prepare = (project: string) => void sh(project, join(packageRoot, "node_modules", ".bin", manager), ...args);
  const good = await runOn({ ...workspace(BETTER), files: own, prepare });
  expect([good.run.outcome, good.run.reason]).toEqual(["approved", null]);
  expect(good.run.evidence.at(-1)).toMatchObject({ exitCode: 0, bound: true });
  const bad = await runOn({ ...workspace(BROKEN), files: own, prepare });
  expect(bad.run.outcome).toBe("unapproved");
  expect(bad.run.reason).toContain('the check "test" fails');
});

test("links into the checkout by their full path lead into the stream's tree", async () => {
  const linked = (project: string) => {
    mkdirSync(join(project, "node_modules", "@x"), { recursive: true });
    symlinkSync(join(project, PACKAGE), join(project, "node_modules", "@x", "core"));
  };
  const { run, project } = await runOn({ ...workspace(BROKEN), prepare: linked });
  expect([run.outcome, run.evidence.at(-1)!.bound]).toEqual(["unapproved", true]);
  expect(run.reason).toContain('the check "test" fails');
  expect(readlinkSync(join(project, "node_modules", "@x", "core"))).toBe(join(project, PACKAGE));
  expect((await runOn({ ...workspace(BETTER), prepare: linked })).run.outcome).toBe("approved");
});

test("node_modules that is a link to elsewhere is there for a stream; code that comes from there is no evidence", async () => {
  const outside = (project: string) => {
    const store = join(project, "..", "store");
    writeFiles(store, { "@x/core/package.json": files[`${PACKAGE}/package.json`]!, "@x/core/src/index.js": CORE });
    symlinkSync(store, join(project, "node_modules"));
  };
  const { run } = await runOn({ ...workspace(BETTER), files: { ...files, ".gitignore": "node_modules\n" }, prepare: outside });
  expect(run.outcome).toBe("untested");
  expect(run.reason).toContain("passes on broken code too");
});

test("what is installed is there in every package, the root's first, and a cut copy is made anew", async () => {
  const many = Array.from({ length: 60 }, (_, index) => `packages/p${index}`);
  const packages = Object.fromEntries(many.map((folder) => [`${folder}/package.json`, "{}"]));
  const { run, home } = await runOn({
    files: { ...files, ...packages },
    prepare: (project) => {
      npm(project);
      for (const folder of many) writeFiles(project, { [`${folder}/node_modules/dep/index.js`]: "1\n" });
    },
    checks: [
      {
        name: "test",
        command: "test $(ls -d packages/*/node_modules/dep | wc -l) = 60 && node --test packages/app/test/",
        cwd: ".",
      },
    ],
    writes: [`${PACKAGE}/src/index.js`, BETTER],
  });
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(existsSync(join(home, "runs", run.id, "worktrees", "trial"))).toBe(false);
});

test("what was red before is told and costs no round; what turned red is the run's", async () => {
  const red = "import test from 'node:test';\ntest('was never right', () => { throw new Error('old'); });\n";
  const project = { ...workspace(BETTER), files: { ...files, "packages/app/test/old.test.js": red } };
  const { run, roles } = await runOn(project);
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(roles()).toEqual(["engineer", "eng-code-reviewer"]);
  expect(run.evidence.at(-1)).toMatchObject({ exitCode: 1, verdict: "as before", excused: "failed before" });
  expect(run.notes.join("\n")).toContain('the check "test" failed before the run began');
  const worse = await runOn({ ...project, writes: [`${PACKAGE}/src/index.js`, BROKEN] });
  expect(worse.run.outcome).toBe("unapproved");
});

test("a tool that is missing cannot run, and that is not held against the run", async () => {
  const lint = { name: "lint", command: "no-such-linter --strict .", cwd: "." };
  const { run } = await runOn({ ...workspace(BETTER), checks: [...checks, lint] });
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(run.evidence.filter(({ name }) => name === "lint").map(({ excused }) => excused)).toContain("cannot run");
  expect(run.notes.join("\n")).toContain('the check "lint" cannot run here');
});

test("a run that changes nothing is unchanged", async () => {
  const { run } = await runOn(workspace(CORE));
  expect([run.status, run.outcome]).toEqual(["done", "unchanged"]);
  expect(run.reason).toContain("what the run began from");
});

test("without a source file that a check could import no trial is made, and that is said", async () => {
  const { run } = await runOn({
    files: { "notes.txt": "one\n" },
    prepare: (project) => writeFileSync(join(project, ".git", "info", "exclude"), ""),
    checks: [{ name: "test", command: "grep -q one notes.txt", cwd: "." }],
    writes: ["notes.txt", "one\ntwo\n"],
  });
  expect(run.outcome).toBe("approved");
  expect(run.notes.join("\n")).toContain("no source file that a check could import");
});

test("a linter that mends as it checks: what it changed is in the result, and was checked", async () => {
  const mend = "sed -i 's/ *$//' packages/core/src/index.js && node --check packages/core/src/index.js";
  const { run, project } = await runOn({
    ...workspace("export const greet = () => 'hello';   \nexport const more = 1;  \n"),
    checks: [...checks, { name: "lint", command: mend, cwd: "." }],
  });
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(sh(project, "git", "show", `${run.branch}:packages/core/src/index.js`)).toBe(BETTER.replaceAll("  ", ""));
  const final = run.evidence.filter(({ tree }) => tree === run.tree);
  expect(final.map(({ name, changed }) => [name, changed])).toEqual([
    ["test", undefined],
    ["lint", undefined],
  ]);
});

test("a check that changes the tree every time has not seen what it vouches for", async () => {
  const { run } = await runOn({
    ...workspace(BETTER),
    checks: [
      ...checks,
      { name: "lint", command: "date +%N >> packages/core/src/index.js.txt; date +%N >> package.json.txt", cwd: "." },
    ],
    files: { ...files, "package.json.txt": "1\n" },
  });
  expect(run.outcome).toBe("unapproved");
  expect(run.reason).toContain('the check "lint" fails');
});
