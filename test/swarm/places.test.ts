import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import type { Run } from "../../src/protocol/runs.ts";
import { cleanEnvironment, providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { swarm } from "../support/swarm/command.ts";
import { makeProject, play, roleOf, type Script } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

async function scene(files: Record<string, string>, script?: Script) {
  const home = temporaryHome();
  const model = await scriptedModel(play(script));
  const project = makeProject(files);
  return { home, model, project, env: cleanEnvironment(home, providerEnvironment(model.url)) };
}

const SPEC = "pipeline:\n  - {phase: spec, agent: pm}\n";

test("in a folder of a checkout swarm works on the whole checkout, unless the folder has a pipeline of its own", {
  timeout: 120_000,
}, async () => {
  const { project, env } = await scene({ "swarm.config.yaml": SPEC, "sub/file": "", "own/swarm.config.yaml": SPEC });
  const below = await swarm(["Greet"], join(project, "sub"), env);
  expect(below).toMatchObject({ code: 0, stdout: expect.stringContaining("Phases: spec done\n") });
  expect(below.stderr).toContain(`Project: ${project}\n`);
  expect(below.stderr).toMatch(
    /Agent calls: usually \d+( and \d+ for each further task)?; at most \d+ with one task, \d+ with 3/,
  );
  expect(existsSync(join(project, "doc", "pm.md"))).toBe(true);
  expect(existsSync(join(project, "sub", "doc"))).toBe(false);
  expect((await swarm(["validate"], join(project, "sub"), env)).stdout).toContain(join(project, "swarm.config.yaml"));

  const own = await swarm(["Greet"], join(project, "own"), env);
  expect(own.stderr).toContain(`Project: ${join(project, "own")}\n`);
  expect(existsSync(join(project, "own", "doc", "pm.md"))).toBe(true);
});

test("resume compares what the environment says now, and an unset variable is as it was", { timeout: 120_000 }, async () => {
  let hold = true;
  const { project, env, model } = await scene({ "swarm.config.yaml": SPEC }, () => (hold ? { hang: true } : undefined));
  const first = swarm(
    ["--json"],
    project,
    { ...env, ISSUE_BODY: "Greet", PRIMARY_MODEL: "first" },
    {
      onStart: (child) => {
        void until("the pm", () => model.requests.length > 0, 60_000).then(() => child.kill("SIGINT"));
      },
    },
  );
  const { code, stdout } = await first;
  const { id, status, phases } = JSON.parse(stdout) as Run;
  expect([code, status, phases[0]?.status]).toEqual([130, "interrupted", "interrupted"]);
  hold = false;
  const asked = model.requests.length;
  const changed = await swarm(["resume", id], project, { ...env, ISSUE_BODY: "Something else", PRIMARY_MODEL: "zzz" });
  expect(changed).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/the request has changed; the primary model was first and is zzz/),
  });
  expect(await swarm(["resume", id], project, { ...env, DOC_DIR: "papers" })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("the documents went to doc and would go to papers"),
  });
  expect(model.requests).toHaveLength(asked);
  expect(await swarm(["resume", id], project, { ...env, ISSUE_BODY: "Greet" })).toMatchObject({ code: 0 });
});

test("what cannot be applied is said on stdout, and a folder for documents that is a file is exit 2", {
  timeout: 120_000,
}, async () => {
  const { project, env } = await scene({
    "swarm.config.yaml": "pipeline:\n  - {phase: implement, parallel: true, agent: engineer}\n",
    "T1.txt": "",
  });
  expect(await swarm(["Greet"], project, { ...env, DOC_DIR: "README.md" })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("DOC_DIR"),
  });
  expect((await swarm(["list"], project, env)).stdout).toContain("no runs");
  writeFileSync(join(project, "T1.txt"), "mine\n");
  const ran = await swarm(["Greet", "--apply"], project, env);
  expect(ran).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/the result was not merged into the checkout: .*T1\.txt/s),
  });
});

test("plan asks the model that the project's pipeline names", { timeout: 120_000 }, async () => {
  const { project, env, model } = await scene({ "swarm.config.yaml": `primaryModel: of-the-file\n${SPEC}` }, ({ role }) =>
    role.startsWith("You clarify") ? { say: "Clear.\n\nREQUIREMENTS_CLEAR" } : { say: "Small." },
  );
  expect(await swarm(["plan", "Greet"], project, env)).toMatchObject({ code: 0 });
  expect(model.requests.map((request) => request.model)).toEqual(["of-the-file", "of-the-file"]);
});

test("two runs at the same time each show their own progress", { timeout: 120_000 }, async () => {
  let both = 0;
  const { project, env } = await scene({ "swarm.config.yaml": SPEC });
  const slow = await scriptedModel(async (request) => {
    both += 1;
    await until("the other run", () => both >= 2, 60_000);
    return play()(request);
  });
  const shared = { ...env, ...providerEnvironment(slow.url) };
  const ended = await Promise.all(["One", "Two"].map((issue) => swarm([issue, "--json"], project, shared)));
  const ids = ended.map(({ stdout }) => (JSON.parse(stdout) as Run).id);
  for (const [index, { stderr, code }] of ended.entries()) {
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining(ids[index]!) });
    expect(stderr).not.toContain(ids[1 - index]);
    expect(stderr.match(/✓ spec\/draft:pm/g)).toHaveLength(1);
  }
});

test("validate --json prints what the route answers, also when the file is wrong; a file of the repository is looked for where it is named", {
  timeout: 120_000,
}, async () => {
  const yaml = "agents:\n  pm: roles/pm.md\n  tester: builtin:testr\npipeline:\n  - {phase: spec, agent: pm}\n";
  const { home, project, env, model } = await scene({ "roles/pm.md": "You write." });
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const check = (body: object) =>
    daemon.json<{ valid: boolean; problems: { path: string; message: string }[]; notes: string[] }>(
      "POST",
      "/api/runs/validate",
      body,
    );
  const bare = await check({ yaml });
  expect(bare.problems.map(({ path }) => path)).toEqual(["agents.tester"]);
  expect(bare.problems[0]!.message).toContain('Did you mean "builtin:tester"?');
  expect(bare.notes).toEqual(['agents.pm: "roles/pm.md" was not looked for, since no project was named']);
  expect(JSON.stringify(bare)).not.toMatch(new RegExp(`${packageRoot}|${home}`));
  const named = await check({ yaml, projectPath: project });
  expect(named).toMatchObject({ valid: false, notes: [] });
  expect(JSON.stringify(named)).not.toContain(packageRoot);
  const elsewhere = await check({ yaml, projectPath: join(project, "roles") });
  expect(elsewhere.problems.map(({ path }) => path)).toEqual(["agents.pm", "agents.tester"]);

  writeFileSync(join(project, "swarm.config.yaml"), yaml);
  const wrong = await swarm(["validate", "--json"], project, env);
  expect(wrong.code).toBe(2);
  expect(JSON.parse(wrong.stdout)).toMatchObject({ valid: false, problems: [{ path: "agents.tester", line: 3 }], notes: [] });
  writeFileSync(join(project, "swarm.config.yaml"), yaml.replace("testr", "tester"));
  const right = await swarm(["validate", "--json"], project, env);
  expect(right.code).toBe(0);
  expect(JSON.parse(right.stdout)).toMatchObject({ valid: true, problems: [], notes: [], primaryModel: expect.any(String) });
});

test("a daemon that was killed takes up the runs it worked on, with or without a conversation; what a resumed run decided is logged", {
  timeout: 120_000,
}, async () => {
  let mood: "hold" | "fail" | "work" = "hold";
  const { home, project, model } = await scene({}, ({ role }) => {
    if (role !== "pm-reviewer" || mood === "work") return undefined;
    return mood === "hold" ? { hang: true } : { say: "No." };
  });
  writeFileSync(
    join(project, "swarm.config.yaml"),
    "pipeline:\n  - phase: spec\n    agent: pm\n    reviews: [{agent: pm-reviewer, maxIterations: 1, approvalKeyword: APPROVED, onExhausted: fail}]\n",
  );
  const first = await startDaemonProcess(home, providerEnvironment(model.url));
  await first.json("POST", "/api/squads", { name: "greeters", slug: "greeters", projectPath: project });
  const { id } = await first.json<Run>("POST", "/api/runs", { squad: "greeters", issue: "Greet" });
  await until("the review", () => model.requests.some((request) => roleOf(request) === "pm-reviewer"), 60_000);
  expect((await first.fetch(`/api/runs/${id}/resume`, { method: "POST" })).status).toBe(409);
  await first.kill("SIGKILL");
  mood = "fail";

  const second = await startDaemonProcess(home, providerEnvironment(model.url));
  const at = async (status: Run["status"]) => (await second.json<Run>("GET", `/api/runs/${id}`)).status === status;
  await until("the run to fail", () => at("failed"), 60_000);
  mood = "work";
  expect((await second.fetch(`/api/runs/${id}/resume`, { method: "POST" })).status).toBe(200);
  await until("the run to end", () => at("done"), 60_000);
  expect((await second.fetch(`/api/runs/${id}/resume`, { method: "POST" })).status).toBe(409);
  const { items } = await second.json<{ items: { decision: string }[] }>("GET", "/api/squads/greeters/decisions");
  expect(items.map(({ decision }) => decision)).toEqual(["English only"]);
});
