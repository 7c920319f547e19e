import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { packageRoot } from "../../src/lib/package-root.ts";
import { temporaryFolder } from "../support/home.ts";
import { git, makeProject } from "../support/swarm/index.ts";

interface Step {
  name?: string;
  uses?: string;
  run?: string;
  env?: Record<string, string>;
  with?: Record<string, string>;
}
const workflow: {
  permissions: object;
  jobs: Record<string, { permissions: object; if: string; steps: Step[]; env?: Record<string, string> }>;
} = parse(readFileSync(join(packageRoot, ".github", "workflows", "swarm.yml"), "utf8"));
const action: { runs: { steps: Step[] } } = parse(readFileSync(join(packageRoot, "action", "action.yml"), "utf8"));
const steps = [...action.runs.steps, ...Object.values(workflow.jobs).flatMap((job) => job.steps)];

test("no script of the workflow or the action holds an expression, and the issue's text is only ever in a variable", () => {
  for (const step of steps) {
    expect(step.run ?? "").not.toContain("${{");
    expect(JSON.stringify(step.with ?? {})).not.toMatch(/issue\.(?:title|body)/);
  }
  const told = steps.filter((step) => /issue\.(?:title|body)/.test(JSON.stringify(step.env ?? {})));
  expect(told.map((step) => step.name)).toEqual(["Run swarm"]);
});

test("where the agents work there is no token that can write, and both labels start it", () => {
  expect(workflow.permissions).toEqual({});
  expect(workflow.jobs.run!.permissions).toEqual({ contents: "read" });
  expect(workflow.jobs.run!.steps[0]!.with).toMatchObject({ "persist-credentials": false });
  expect(workflow.jobs.publish!.permissions).toEqual({ contents: "write", "pull-requests": "write", issues: "write" });
  expect(workflow.jobs.run!.if).toMatch(/'run-swarm'.*'run-swarm-verbose'/);
});

test("the action hands a hostile issue on as it is and bundles the branch", () => {
  const folder = temporaryFolder();
  const project = makeProject();
  git(project, "checkout", "-q", "-b", "swarm/r_1");
  writeFileSync(join(project, "made.txt"), "made\n");
  git(project, "add", "-A");
  git(project, "commit", "-q", "-m", "made");
  git(project, "checkout", "-q", "main");
  mkdirSync(join(folder, "bin"));
  mkdirSync(join(folder, "action"));
  const program = `import { writeFileSync } from "node:fs";
writeFileSync(${JSON.stringify(join(folder, "heard.json"))}, JSON.stringify({ issue: process.env.ISSUE_BODY, title: process.env.ISSUE_TITLE, model: process.env.PRIMARY_MODEL, args: process.argv.slice(2) }));
console.log(JSON.stringify({ branch: "swarm/r_1" }));
process.exit(3);`;
  writeFileSync(join(folder, "bin", "swarm.js"), program);
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  writeFileSync(
    join(folder, "jq"),
    '#!/bin/sh\nnode -e \'console.log(JSON.parse(require("fs").readFileSync(process.argv[1],"utf8")).branch ?? "")\' "$3"\n',
    { mode: 0o755 },
  );
  const script = action.runs.steps.find((step) => step.name === "Run swarm")!.run!;
  const text = `$(touch ${folder}/pwned) \`touch ${folder}/pwned\` "; touch ${folder}/pwned; '\n\${IFS}`;
  execFileSync("bash", ["--norc", "--noprofile", "-c", script], {
    cwd: project,
    env: {
      PATH: `${folder}:${process.env.PATH}`,
      RUNNER_TEMP: folder,
      GITHUB_OUTPUT: join(folder, "output"),
      OUT: join(folder, "out"),
      ACTION_PATH: join(folder, "action"),
      ISSUE_TITLE: "Title",
      ISSUE_TEXT: text,
      INPUT_PRIMARY_MODEL: "",
      INPUT_REVIEW_MODEL: "",
      COPILOT_GITHUB_TOKEN: "",
    },
  });
  expect(JSON.parse(readFileSync(join(folder, "heard.json"), "utf8"))).toEqual({
    issue: `Title\n\n${text}`,
    args: ["run", "--json"],
  });
  expect(existsSync(join(folder, "pwned"))).toBe(false);
  expect(readFileSync(join(folder, "output"), "utf8")).toBe("exit-code=3\nbranch=swarm/r_1\n");
  expect(git(project, "bundle", "list-heads", join(folder, "out", "result.bundle"))).toMatch(/refs\/heads\/swarm\/r_1$/);
});
