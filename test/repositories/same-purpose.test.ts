import { expect, test } from "vitest";
import { findChecksWith } from "../../src/swarm/checks/planned-checks.ts";
import { walledGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { runOn } from "../support/swarm/real-project.ts";

const GREET = "export const greet = () => 'hello';\n";

/** A run on a project with these scripts, which its CI calls in that order. */
async function runWith(
  scripts: Record<string, string>,
  writes: [path: string, text: string],
  files: Record<string, string> = {},
) {
  const { git } = walledGit(temporaryFolder(), process.env);
  const steps = Object.keys(scripts).map((name) => `      - run: npm run ${name}\n`);
  const { run } = await runOn({
    files: {
      "package.json": JSON.stringify({ name: "greet", type: "module", scripts }),
      ".github/workflows/ci.yml": `on: push\njobs:\n  ci:\n    runs-on: ubuntu-latest\n    steps:\n${steps.join("")}`,
      "src/greet.js": GREET,
      "test/greet.test.js":
        "import test from 'node:test';\nimport assert from 'node:assert';\nimport { greet } from '../src/greet.js';\ntest('greets', () => assert.equal(greet(), 'hello'));\n",
      ...files,
    },
    checks: [],
    writes,
    parts: { findChecks: findChecksWith(git), env: { PATH: process.env.PATH, HOME: temporaryFolder() } },
  });
  return run;
}
const verdicts = ({ evidence }: Awaited<ReturnType<typeof runWith>>) =>
  Object.fromEntries(evidence.map(({ command, verdict }) => [command, verdict]));

test("a linter that the change crashes is not excused by another linter that cannot run here", async () => {
  const scripts = { lint: "no-such-linter .", "lint:types": "node types.js", test: "node --test test/*.test.js" };
  const broken: [string, string] = ["types.js", "import 'no-such-package';\n"];
  const run = await runWith(scripts, broken, { "types.js": "import './src/greet.js';\n" });
  expect(run.evidence).toHaveLength(3);
  expect(verdicts(run)).toMatchObject({ "npm run lint": "could not run", "npm run lint:types": "failed" });
  expect(run.outcome).toBe("unapproved");
});

test("a linter that was red before the run is not blamed on it because another one was green", async () => {
  const scripts = { lint: "node --check src/greet.js", "lint:types": "node types.js", test: "node --test test/*.test.js" };
  const run = await runWith(scripts, ["src/greet.js", `${GREET}export const more = 1;\n`], {
    "types.js": "console.error('src/greet.js:1: error: greet has no type'); process.exit(1);\n",
  });
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(verdicts(run)).toMatchObject({ "npm run lint": "passed", "npm run test": "passed" });
});

test("tests that notice nothing do not borrow what other tests noticed", async () => {
  const scripts = { test: "node --test test/*.test.js", "test:unit": "node --test docs/*.test.js" };
  const run = await runWith(scripts, ["src/greet.js", `${GREET}export const more = 1;\n`], {
    "docs/links.test.js": "import test from 'node:test';\ntest('links', () => {});\n",
  });
  expect(run.evidence.map(({ command, bound }) => [command, bound])).toEqual([
    ["npm run test", true],
    ["npm run test:unit", false],
  ]);
  expect(run.notes.join("\n")).toContain('"test: npm run test:unit" also passes');
});
