import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { packageRoot } from "../../src/lib/package-root.ts";
import { providerEnvironment } from "../support/daemon.ts";
import { gitHubDialect } from "../support/forge/github.ts";
import { GREET_TEST } from "../support/forge/loop.ts";
import { startForge, TOKEN } from "../support/forge/server.ts";
import { now, openIssue, projectAt, setLabel } from "../support/forge/watched.ts";
import { collectEndings, temporaryFolder } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { play, sh, write } from "../support/swarm/index.ts";

interface Step {
  name?: string;
  if?: string;
  uses?: string;
  run?: string;
  env?: Record<string, string>;
  with?: Record<string, string>;
}
const action: { inputs: Record<string, { default?: string }>; runs: { steps: Step[] } } = parse(
  readFileSync(join(packageRoot, "action", "action.yml"), "utf8"),
);
type Context = Record<string, unknown>;

/** Looks up a name of an expression, such as `github.event.issue.title`. */
const lookUp = (name: string, context: Context): unknown =>
  name.split(".").reduce<unknown>((value, key) => (value as Context | undefined)?.[key], context);
/** Replaces the expressions of a text, as a runner does. */
const filled = (text: string, context: Context) =>
  text.replace(/\$\{\{ ([\w.-]+) \}\}/g, (_all, name: string) => String(lookUp(name, context) ?? ""));
const isWanted = (condition: string | undefined, context: Context) =>
  (condition ?? "always()").split(" && ").every((part) => {
    const [, name = "", operator, value] = /^([\w.-]+) (==|!=) '([^']*)'$/.exec(part) ?? [];
    return part === "always()" || (lookUp(name, context) === value) === (operator === "==");
  });

test("the action does the whole loop in jobs that share nothing but a cache, and no shell sees what the issue says", async () => {
  const { atTheEnd, end } = collectEndings();
  try {
    const double = await startForge(gitHubDialect(), atTheEnd);
    projectAt(double, "acme/jobs", atTheEnd, { "spec/greet.test.ts": GREET_TEST });
    const repo = double.repos["acme/jobs"]!;
    const cache = join(temporaryFolder(atTheEnd), "cache");
    const marks = temporaryFolder(atTheEnd);
    const evil = `$(touch ${marks}/pwned) \`touch ${marks}/pwned\` "; touch ${marks}/pwned; '\n\${IFS}`;
    let isWeakening = false;
    const model = await scriptedModel(
      play(({ role, request, prompt, afterTool }) => {
        if (role !== "engineer" || !JSON.stringify(request.messages).includes("proposed as pull request")) return undefined;
        if (afterTool) return { say: "C1: done - as you said" };
        return isWeakening ? sh(`rm -f spec/greet.test.ts; echo ${prompt.length} > x.txt`) : write("T1.txt", "HELLO\n");
      }),
      undefined,
      atTheEnd,
    );

    /** Runs the steps of the action as a job on a new machine would. */
    async function job(event: object): Promise<{ outputs: string; summary: string }> {
      const [temp, workspace] = [join(marks, "runner"), temporaryFolder(atTheEnd)];
      rmSync(temp, { recursive: true, force: true });
      mkdirSync(temp);
      const files = { GITHUB_OUTPUT: join(temp, "output"), GITHUB_STEP_SUMMARY: join(temp, "summary") };
      const github = {
        event,
        token: TOKEN,
        repository_id: "1",
        run_id: "2",
        run_attempt: "1",
        action_path: join(packageRoot, "action"),
      };
      const given = { loop: "true", label: "io", minutes: "4" };
      const inputs = Object.fromEntries(
        Object.entries(action.inputs).map(([name, { default: value = "" }]) => [name, filled(value, { github })]),
      );
      const context = { github, inputs: { ...inputs, ...given }, runner: { temp, os: "Linux" } };
      for (const step of action.runs.steps.filter((each) => isWanted(each.if, context))) {
        const path = filled(step.with?.path ?? "", context);
        if (step.uses?.startsWith("actions/cache/restore@") && existsSync(cache))
          cpSync(cache, path, { recursive: true, preserveTimestamps: true });
        if (step.uses?.startsWith("actions/cache/save@")) cpSync(path, cache, { recursive: true, preserveTimestamps: true });
        // The package is installed here.
        if (step.run === undefined || step.name === "Install swarm") continue;
        const own = Object.entries(step.env ?? {}).map(([name, value]) => [name, filled(value, context)]);
        await promisify(execFile)("bash", ["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step.run], {
          cwd: workspace,
          env: {
            ...{
              PATH: process.env.PATH,
              HOME: workspace,
              IO_PORT: "0",
              RUNNER_TEMP: temp,
              ...files,
              ...providerEnvironment(model.url),
            },
            ...{ GITHUB_API_URL: double.apiUrl, GITHUB_SERVER_URL: double.url, GITHUB_REPOSITORY: "acme/jobs" },
            ...Object.fromEntries(own),
          },
        });
      }
      return { outputs: readFileSync(files.GITHUB_OUTPUT, "utf8"), summary: readFileSync(files.GITHUB_STEP_SUMMARY, "utf8") };
    }

    const issue = openIssue(repo, `Greet ${evil}`, evil, "stranger");
    setLabel(repo, issue, "mona");
    const first = await job({ action: "labeled", issue: { number: issue, title: `Greet ${evil}`, body: evil } });
    expect(first.outputs).toBe("exit-code=0\nbranch=\n");
    expect(repo.pulls).toMatchObject([{ state: "open", number: 2 }]);
    const { head } = repo.pulls[0]!;
    const tip = () => double.headOf("acme/jobs", head)!;
    const proposed = tip();

    repo.comments.push({ id: 900, issue: 2, by: "ted", body: `Louder ${evil}`, at: now() });
    repo.pulls[0]!.at = now();
    const second = await job({ action: "created", comment: { body: evil } });
    expect(second.summary).toContain("    ");
    expect(tip()).not.toBe(proposed);
    expect(repo.comments.at(-1)!.body).toContain(`Done in ${tip()}.`);

    const answered = tip();
    isWeakening = true;
    repo.checks.push({ id: 901, commit: answered, name: `test ${evil}`, status: "completed", conclusion: "failure", log: evil });
    const third = await job({ action: "completed" });
    expect(third.outputs).toBe("exit-code=1\nbranch=\n");
    expect(tip()).toBe(answered);
    expect(repo.comments.at(-1)!.body).toContain("it weakens tests or CI");

    expect(readdirSync(marks)).toEqual(["runner"]);
    expect(repo.pulls).toHaveLength(1);
    const kept = readdirSync(cache, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
    expect(kept.filter(({ parentPath, name }) => readFileSync(join(parentPath, name), "latin1").includes(TOKEN))).toEqual([]);
    expect(double.faults).toEqual([]);
  } finally {
    await end();
  }
}, 600_000);
