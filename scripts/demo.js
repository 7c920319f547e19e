// Creates a small project with a failing acceptance test and lets the default pipeline fix it, on the rehearsal model: real
// edits, real worktrees, real test runs.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const place = mkdtempSync(join(tmpdir(), "io-demo-"));
const project = join(place, "greeter");

const files = {
  "package.json": `${JSON.stringify({ name: "greeter", version: "1.0.0", type: "module", scripts: { test: "node --test" } }, null, 2)}\n`,
  "README.md": "# Greeter\n\n`greet(name)` says hello.\n",
  "src/greet.js": 'export function greet(name) {\n  return "Hello, " + name + "!";\n}\n',
  "test/greet.test.js":
    'import assert from "node:assert/strict";\nimport { test } from "node:test";\nimport { greet } from "../src/greet.js";\n\ntest("greets by name", () => assert.equal(greet("Ada"), "Hello, Ada!"));\n',
  "test/farewell.test.js":
    'import assert from "node:assert/strict";\nimport { test } from "node:test";\n\nconst { farewell } = await import("../src/farewell.js");\n\ntest("says goodbye by name", () => assert.equal(farewell("Ada"), "Goodbye, Ada!"));\ntest("says goodbye without a name", () => assert.equal(farewell(), "Goodbye!"));\n',
};
for (const [name, text] of Object.entries(files)) {
  mkdirSync(dirname(join(project, name)), { recursive: true });
  writeFileSync(join(project, name), text);
}
const git = (...args) => run("git", ["-c", "user.name=Demo", "-c", "user.email=demo@localhost", ...args], { cwd: project });
git("init", "--quiet", "--initial-branch=main");
git("add", "-A");
git("commit", "--quiet", "-m", "A greeter, and an acceptance test that fails");

console.log(`A sample project: ${project}\n\n$ npm test`);
const before = spawnSync("npm", ["test", "--silent"], { cwd: project, encoding: "utf8" });
console.log(`${tail(before.stdout)}\n→ exit ${before.status}: the acceptance test fails, as it should.\n`);
if (before.status === 0) throw new Error("the acceptance test was meant to fail first");

console.log('$ swarm run "Add a farewell(name) function"');
const code = await new Promise((done) => {
  const child = spawn(
    process.execPath,
    [join(root, "bin", "swarm.js"), "run", "Add a farewell(name) function, so that the acceptance test passes"],
    {
      cwd: project,
      env: {
        PATH: process.env.PATH,
        HOME: place,
        IO_HOME: join(place, "io"),
        IO_ENGINE: "rehearsal",
        NO_COLOR: process.env.NO_COLOR,
        GIT_AUTHOR_NAME: "Demo",
        GIT_AUTHOR_EMAIL: "demo@localhost",
        GIT_COMMITTER_NAME: "Demo",
        GIT_COMMITTER_EMAIL: "demo@localhost",
      },
      stdio: "inherit",
    },
  );
  child.once("close", done);
});
console.log(`→ exit ${code}\n`);

const branch = run("git", ["for-each-ref", "--format=%(refname:short)", "refs/heads/swarm"], { cwd: project })
  .trim()
  .split("\n")[0];
console.log(`$ git log --oneline ${branch}\n${run("git", ["log", "--oneline", branch], { cwd: project })}`);
console.log(`$ git diff --stat main ${branch}\n${run("git", ["diff", "--stat", "main", branch], { cwd: project })}`);
run("git", ["checkout", "--quiet", branch], { cwd: project });
const after = spawnSync("npm", ["test", "--silent"], { cwd: project, encoding: "utf8" });
console.log(`$ npm test   (on ${branch})\n${tail(after.stdout)}\n→ exit ${after.status}`);
console.log(`\nThe summary: ${join(project, "doc", "swarm-summary.md")}`);
process.exitCode = code === 0 && after.status === 0 ? 0 : 1;

function run(program, args, options) {
  const result = spawnSync(program, args, { encoding: "utf8", ...options });
  if (result.status !== 0) throw new Error(`${program} ${args.join(" ")}: ${result.stderr}`);
  return result.stdout;
}

function tail(text) {
  return text.trim().split("\n").slice(-10).join("\n");
}
