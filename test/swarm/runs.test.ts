import { existsSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { releaseLocks } from "../../src/git/locks.ts";
import { exitCodeOf } from "../../src/swarm/run/swarm.ts";
import { temporaryFolder } from "../support/home.ts";
import { git, type Script, startSwarm } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const YAML = `
pipeline:
  - {phase: spec, agent: pm, reviews: [{agent: pm-reviewer, maxIterations: 1, approvalKeyword: APPROVED}]}
  - {phase: implement, parallel: true, agent: engineer}
`;
const start = (script: Script, env: NodeJS.ProcessEnv = {}) => startSwarm({ script, env, files: { "swarm.config.yaml": YAML } });

test("a cancelled run stops at once, is shown as such, and can be resumed without asking again what was answered", async () => {
  let patient = false;
  const { swarm, project, settings, roles, news } = await start(({ role }) =>
    role === "engineer" && !patient ? { hang: true } : undefined,
  );
  const handle = await swarm.start({ projectPath: project, issue: "Do it", settings });
  await until("the engineer to be asked", () => roles().includes("engineer"));
  swarm.cancel(handle.id);
  const run = await handle.finished;
  expect([run.status, run.outcome, exitCodeOf(run)]).toEqual(["cancelled", "cancelled", 130]);
  expect(news.at(-1)).toMatchObject({ type: "run.finished", data: { runId: run.id, status: "cancelled" } });
  patient = true;
  const again = await (await swarm.resume(run.id)).finished;
  expect(again).toMatchObject({ status: "done", outcome: "approved", id: run.id });
  expect(roles().filter((role) => role === "pm")).toHaveLength(1);
  await expect(swarm.resume(run.id)).rejects.toThrow(/has ended \(approved\)/);
  expect(swarm.list().map(({ id, status }) => ({ id, status }))).toEqual([{ id: run.id, status: "done" }]);
  expect(() => swarm.cancel("r_none")).toThrow(/there is no run "r_none"/);
});

test("locks that a power cut left in the run's trees and on its branches do not keep it from going on", async () => {
  let patient = false;
  const { swarm, project, home, settings, roles } = await start(({ role }) =>
    role === "engineer" && !patient ? { hang: true } : undefined,
  );
  const handle = await swarm.start({ projectPath: project, issue: "Do it", settings });
  await until("the engineer to be asked", () => roles().includes("engineer"));
  await swarm.close();
  const heads = join(project, ".git", "refs", "heads", "swarm");
  const locks = ["run", "stream-1"].flatMap((tree) => {
    const folder = git(join(home, "runs", handle.id, "worktrees", tree), "rev-parse", "--absolute-git-dir");
    return [join(folder, "index.lock"), join(folder, "HEAD.lock")];
  });
  locks.push(join(heads, `${handle.id}.lock`), join(heads, `${handle.id}-stream-1.lock`));
  const before = new Date(Date.now() - 60_000);
  for (const lock of locks) {
    writeFileSync(lock, "");
    utimesSync(lock, before, before);
  }
  patient = true;
  expect(await (await swarm.resume(handle.id)).finished).toMatchObject({ status: "done", outcome: "approved" });
  expect(locks.filter((lock) => existsSync(lock))).toEqual([]);
});

test("a lock is waited for while a git may still hold it", async () => {
  const lock = join(temporaryFolder(), "index.lock");
  writeFileSync(lock, "");
  let now = Date.now();
  const released = releaseLocks([lock], () => now).then(() => "released");
  expect(await Promise.race([released, sleep(300, "waiting")])).toBe("waiting");
  expect(existsSync(lock)).toBe(true);
  now += 11_000;
  expect(await released).toBe("released");
  expect(existsSync(lock)).toBe(false);
});

test("a run that was stopped with its process is interrupted, not ended, and goes on", async () => {
  let patient = false;
  const { swarm, project, settings, roles } = await start(({ role }) =>
    role === "pm-reviewer" && !patient ? { hang: true } : undefined,
  );
  const handle = await swarm.start({ projectPath: project, issue: "Do it", settings });
  await until("the reviewer to be asked", () => roles().includes("pm-reviewer"));
  await expect(swarm.resume(handle.id)).rejects.toThrow(/still running/);
  await swarm.close();
  expect(swarm.show(handle.id)).toMatchObject({ status: "interrupted", outcome: null });
  patient = true;
  expect(await (await swarm.resume(handle.id)).finished).toMatchObject({ status: "done", outcome: "approved" });
  expect(roles().filter((role) => role === "pm")).toHaveLength(1);
});

test("a failed run tries again only what failed", async () => {
  let broken = true;
  const { swarm, project, settings, roles } = await start(
    ({ role }) => (role === "engineer" && broken ? { status: 400 } : undefined),
    { MAX_RETRIES: "1" },
  );
  const first = await (await swarm.start({ projectPath: project, issue: "Do it", settings })).finished;
  expect([first.status, exitCodeOf(first)]).toEqual(["failed", 1]);
  broken = false;
  const second = await (await swarm.resume(first.id)).finished;
  expect(second).toMatchObject({ status: "done", outcome: "approved" });
  expect(roles()).toEqual(["pm", "pm-reviewer", "engineer", "engineer", "engineer"]);
  expect(git(project, "ls-tree", "--name-only", second.branch!)).toContain("T1.txt");
});

test("a run is not resumed when the pipeline, an agent, a model or the request has changed, and says which", async () => {
  const { swarm, project, settings, roles } = await start(({ role }) => (role === "engineer" ? { hang: true } : undefined));
  const handle = await swarm.start({ projectPath: project, issue: "Do it", settings });
  await until("the engineer to be asked", () => roles().includes("engineer"));
  await swarm.close();
  await expect(swarm.resume(handle.id, { issue: "Do something else" })).rejects.toThrow(/the request has changed/);
  await expect(swarm.resume(handle.id, { settings: { ...settings, primaryModel: "other" } })).rejects.toThrow(
    /the primary model was claude-opus-4-6-fast and is other/,
  );
  const file = join(project, "swarm.config.yaml");
  const yaml = readFileSync(file, "utf8");
  writeFileSync(file, yaml.replace("maxIterations: 1", "maxIterations: 2"));
  await expect(swarm.resume(handle.id)).rejects.toThrow(/the pipeline file has changed/);
  writeFileSync(file, yaml);
  writeFileSync(join(project, "engineer.md"), "Mine.");
  writeFileSync(file, `agents: {engineer: engineer.md}\n${yaml}`);
  await expect(swarm.resume(handle.id)).rejects.toThrow(/the instructions of engineer have changed/);
});

test("a project without a folder, an empty request and a bad pipeline are refused before any model is asked", async () => {
  const { swarm, project, settings, model } = await start(() => undefined);
  await expect(swarm.start({ projectPath: join(project, "nowhere"), issue: "x", settings })).rejects.toThrow(/is no folder/);
  await expect(swarm.start({ projectPath: project, issue: "  ", settings })).rejects.toThrow(/there is no request/);
  writeFileSync(join(project, "swarm.config.yaml"), "pipeline: [{phase: spec, agent: nobody-here}]");
  await expect(swarm.start({ projectPath: project, issue: "x", settings })).rejects.toThrow(
    /1 problem[\s\S]*no agent is called "nobody-here"/,
  );
  await expect(swarm.validate({ projectPath: project, settings, pipelineFile: "missing.yaml" })).rejects.toThrow(
    /missing\.yaml: cannot be read: it is not there/,
  );
  expect(model.requests).toHaveLength(0);
  expect(swarm.list()).toEqual([]);
});

test("a squad's decisions are told to the agents", async () => {
  const { swarm, project, settings, prompts } = await start(() => undefined);
  await (await swarm.start({ projectPath: project, issue: "Do it", settings, decisions: ["Only tabs"] })).finished;
  for (const role of ["pm", "pm-reviewer", "engineer"])
    expect(prompts(role)[0]).toMatch(/Decisions that stand for this project\n- Only tabs/);
});

test("planning asks until the requirements are clear, has them analysed, and writes a plan that can be run", async () => {
  const asked: string[] = [];
  const answers = ["In Welsh", ""];
  const { swarm, project, settings, model } = await startSwarm({
    script: ({ role, before }) => {
      if (role.startsWith("You clarify a request"))
        return { say: before < 2 ? `Question ${before + 1}?` : "1. Greets in Welsh.\n\nREQUIREMENTS_CLEAR" };
      return { say: "Complexity: small." };
    },
  });
  const plan = await swarm.plan({
    projectPath: project,
    issue: "Greet",
    settings,
    ask: async (question) => {
      asked.push(question);
      return answers.shift() ?? null;
    },
  });
  expect(asked).toEqual(["Question 1?", "Question 2?"]);
  expect(plan.rounds.map(({ answer }) => answer)).toEqual(["In Welsh", "Use your judgement."]);
  const text = readFileSync(join(project, "doc", "plan.md"), "utf8");
  expect(text).toMatch(
    /# Plan\n\n_20.*_[\s\S]*## Request\n\nGreet[\s\S]*1\. Greets in Welsh\.[\s\S]*## Engineering analysis\n\nComplexity: small\./,
  );
  expect(text).not.toContain("REQUIREMENTS_CLEAR");
  expect(model.requests.every(({ tools }) => tools?.length === 1 && !JSON.stringify(tools).includes('"write"'))).toBe(true);
});

test("what was answered before planning was interrupted is kept, until the plan is whole", async () => {
  const { swarm, project, settings } = await startSwarm({
    script: ({ role, before, prompt }) => {
      if (!role.startsWith("You clarify")) return { say: "Small." };
      if (prompt.includes("In Welsh"))
        return prompt.includes("not finished") ? { say: "Clear.\n\nREQUIREMENTS_CLEAR" } : { hang: true };
      return { say: `Question ${before + 1}?` };
    },
  });
  const draft = join(project, "doc", "plan-draft.md");
  const stop = new AbortController();
  const cut = swarm.plan({ projectPath: project, issue: "Greet", settings, signal: stop.signal, ask: async () => "In Welsh" });
  await until("the answer to be kept", () => existsSync(draft));
  stop.abort();
  await expect(cut).rejects.toThrow(
    `planning was interrupted. What was answered is in ${draft}: go on with swarm plan -p ${draft}`,
  );
  const kept = readFileSync(draft, "utf8");
  expect(kept).toMatch(/## Request\n\nGreet[\s\S]*Question 1\?[\s\S]*\*\*Answer:\*\* In Welsh/);
  expect(existsSync(join(project, "doc", "plan.md"))).toBe(false);
  await swarm.plan({ projectPath: project, issue: kept, settings, ask: async () => null });
  expect(readFileSync(join(project, "doc", "plan.md"), "utf8")).toContain("In Welsh");
  expect(existsSync(draft)).toBe(false);
});

test("planning ends after ten rounds, or when there is nobody to ask", async () => {
  const script: Script = ({ role, prompt }) => ({
    say: !role.startsWith("You clarify") ? "Small." : prompt.includes("no more answers") ? "Assumed it all." : "Why?",
  });
  const { swarm, project, settings } = await startSwarm({ script });
  const talkative = await swarm.plan({ projectPath: project, issue: "Greet", settings, ask: async () => "because" });
  expect(talkative.rounds).toHaveLength(10);
  const alone = await swarm.plan({ projectPath: project, issue: "Greet", settings, ask: async () => null });
  expect(alone.rounds).toEqual([{ questions: "Why?", answer: "Use your judgement." }]);
  expect(alone.requirements).toBe("Assumed it all.");
});
