import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { writeFileAtomic } from "../lib/atomic.ts";
import { openGitAlone } from "./git-alone.ts";

const PACKAGE = { name: "greeter", version: "1.0.0", type: "module", scripts: { test: "node --test" } };

/** A small project whose acceptance test for farewell() fails: the rehearsal model knows the fix. */
const PROJECT: Record<string, string> = {
  "package.json": `${JSON.stringify(PACKAGE, null, 2)}\n`,
  "README.md": "# Greeter\n\n`greet(name)` says hello.\n",
  "src/greet.js": 'export function greet(name) {\n  return "Hello, " + name + "!";\n}\n',
  "test/greet.test.js":
    'import assert from "node:assert/strict";\nimport { test } from "node:test";\nimport { greet } from "../src/greet.js";\n\ntest("greets by name", () => assert.equal(greet("Ada"), "Hello, Ada!"));\n',
  "test/farewell.test.js":
    'import assert from "node:assert/strict";\nimport { test } from "node:test";\n\nconst { farewell } = await import("../src/farewell.js");\n\ntest("says goodbye by name", () => assert.equal(farewell("Ada"), "Goodbye, Ada!"));\ntest("says goodbye without a name", () => assert.equal(farewell(), "Goodbye!"));\n',
};

export const SAMPLE_ISSUE = "Add a farewell(name) function, so that the acceptance test passes";
export const SAMPLE_SKILL = "what-changed";
const SKILL = `---
name: ${SAMPLE_SKILL}
description: How to tell what changed lately in a project.
---

# What changed

Run \`git log --oneline --stat -3\` where the user stands, and tell in a sentence what it shows.
`;

/** Creates the sample project, committed. */
export async function makeSampleProject(folder: string, env: NodeJS.ProcessEnv): Promise<void> {
  writeAll(folder, PROJECT);
  const git = openGitAlone(env).with({ writable: [folder] });
  const who = ["-c", "user.name=IO tour", "-c", "user.email=tour@localhost"];
  await git.must(folder, ["init", "--quiet", "--initial-branch=main"]);
  await git.must(folder, ["add", "-A"]);
  await git.must(folder, [...who, "commit", "--quiet", "-m", "A greeter, and an acceptance test that fails"]);
}

/** Adds the sample skill to a home's skills, disabled like every new one. */
export function addSampleSkill(skills: string): void {
  writeAll(join(skills, SAMPLE_SKILL), { "SKILL.md": SKILL });
}

function writeAll(folder: string, files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileAtomic(join(folder, name), text, 0o644);
  }
}
