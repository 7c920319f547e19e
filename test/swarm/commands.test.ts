import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import type { Message } from "../../src/protocol/messages.ts";
import type { Run } from "../../src/protocol/runs.ts";
import { cleanEnvironment, providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { ensureProgram } from "../support/program.ts";
import { swarm } from "../support/swarm/command.ts";
import { git, makeProject, play, roleOf } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

test("a run from the command line, without a daemon: progress, documents, branch, and every command that looks at it", {
  timeout: 120_000,
}, async () => {
  const home = temporaryHome();
  const model = await scriptedModel(play());
  const project = makeProject();
  const env = cleanEnvironment(home, providerEnvironment(model.url));
  const ran = await swarm(["Add a greeting", "--json"], project, env);
  expect(ran.code).toBe(0);
  const run = JSON.parse(ran.stdout) as Run;
  expect(run).toMatchObject({ status: "done", outcome: "approved", branch: `swarm/${run.id}` });
  expect(ran.stderr).toMatch(/▸ spec[\s\S]*✓ spec\/draft:pm[\s\S]*▸ implement[\s\S]*stream 1/);
  expect(git(project, "branch", "--list", run.branch!)).toContain(run.branch);
  expect(git(project, "rev-parse", "--abbrev-ref", "HEAD")).toBe("main");
  expect(existsSync(join(project, "doc", "swarm-summary.md"))).toBe(true);

  expect(JSON.parse((await swarm(["list", "--json"], project, env)).stdout).items[0]).toMatchObject({ id: run.id });
  expect((await swarm(["show", run.id], project, env)).stdout).toContain("approved");
  expect(await swarm(["show", "r_nope"], project, env)).toMatchObject({ code: 1, stderr: expect.stringContaining("swarm list") });
  expect(await swarm(["resume", run.id], project, env)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("nothing to resume"),
  });
  const validated = await swarm(["validate"], project, env);
  expect(validated).toMatchObject({ code: 0, stdout: expect.stringMatching(/Most agent calls: \d+/) });
});

test("a project's checks, which run what agents wrote, do not see IO's secrets", { timeout: 120_000 }, async () => {
  await ensureProgram("bwrap", "bubblewrap");
  const home = temporaryHome({ telegramBotToken: "123456:telegram-bot-secret-value" });
  const model = await scriptedModel(play());
  const project = makeProject({
    "swarm.config.yaml": `checks: ["cat ${home}/config.json ${home}/io.db && env"]\npipeline:\n  - {phase: implement, parallel: true, agent: engineer}\n`,
  });
  const env = cleanEnvironment(home, { ...providerEnvironment(model.url), MY_API_KEY: "quite-secret" });
  const run = JSON.parse((await swarm(["Do it", "--json"], project, env)).stdout) as Run;
  expect(run.evidence[0]).toMatchObject({ exitCode: 1 });
  expect(run.evidence[0]!.tail).toContain("config.json: No such file");
  expect(run.evidence[0]!.tail).not.toMatch(/secret|scripted-key/);
});

test("what the agents say is shown when VERBOSE or -v asks for it, and not otherwise", { timeout: 120_000 }, async () => {
  const home = temporaryHome();
  const model = await scriptedModel(play(({ role }) => (role === "pm" ? { say: "THE-SPEC in full" } : undefined)));
  const project = makeProject({
    "swarm.config.yaml": "pipeline:\n  - {phase: spec, agent: pm}\n",
  });
  const env = cleanEnvironment(home, providerEnvironment(model.url));
  expect((await swarm(["Do it"], project, env)).stderr).not.toContain("THE-SPEC");
  expect((await swarm(["Do it"], project, { ...env, VERBOSE: "true" })).stderr).toContain("THE-SPEC in full");
  expect((await swarm(["Do it", "-v"], project, env)).stderr).toContain("THE-SPEC in full");
  expect((await swarm(["Do it", "--json", "--verbose"], project, env)).stdout).not.toContain("\nTHE-SPEC");
});

test("wrong usage is exit 2 before any model is asked, and a run without every approval is exit 3", {
  timeout: 120_000,
}, async () => {
  const home = temporaryHome();
  const model = await scriptedModel(play(({ role }) => (role === "eng-code-reviewer" ? { say: "No." } : undefined)));
  const project = makeProject();
  const env = cleanEnvironment(home, providerEnvironment(model.url));
  expect(await swarm([], project, env)).toMatchObject({ code: 2, stderr: expect.stringContaining("ISSUE_BODY") });
  expect(await swarm(["run", "-p", "missing.md"], project, env)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("missing.md"),
  });
  expect(await swarm(["x"], project, { ...env, MAX_RETRIES: "many" })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("MAX_RETRIES"),
  });
  writeFileSync(join(project, "swarm.config.yaml"), "agents: {}\npipelin: []\n");
  expect(await swarm(["x"], project, env)).toMatchObject({ code: 2, stderr: expect.stringContaining("pipelin") });
  expect(await swarm(["validate", "nowhere.yaml"], project, env)).toMatchObject({ code: 2 });
  writeFileSync(join(project, "swarm.config.yaml"), readFileSync(join(packageRoot, "pipelines", "default.yaml"), "utf8"));
  expect(model.requests).toHaveLength(0);

  const unapproved = await swarm([], project, { ...env, ISSUE_BODY: "Add a greeting" });
  expect(unapproved).toMatchObject({ code: 3, stdout: expect.stringContaining("Not approved") });
});

test("plan reads answers from a pipe, and its plan can be run", { timeout: 120_000 }, async () => {
  const home = temporaryHome();
  const project = makeProject();
  const model = await scriptedModel((request) =>
    play(({ role, prompt }) => {
      if (role.startsWith("You clarify"))
        return { say: prompt.includes("in blue") ? "R1: greet in blue.\n\nREQUIREMENTS_CLEAR" : "1. Which colour?" };
      if (role.startsWith("You analyse")) return { say: "Complexity: small." };
      return undefined;
    })(request),
  );
  const env = cleanEnvironment(home, providerEnvironment(model.url));
  const planned = await swarm(["plan", "Add a greeting"], project, env, { input: "in blue\n" });
  expect(planned).toMatchObject({ code: 0, stderr: expect.stringContaining("Which colour?") });
  const plan = readFileSync(join(project, "doc", "plan.md"), "utf8");
  expect(plan).toContain("greet in blue");
  const asked = model.requests.length;
  expect(await swarm(["run", "-p", "doc/plan.md"], project, env)).toMatchObject({ code: 0 });
  expect(lastUserText(model.requests[asked]!)).toContain("greet in blue");
});

test("validate and plan name each check with where it was found, and what a person chose goes before it", {
  timeout: 120_000,
}, async () => {
  const home = temporaryHome();
  const project = makeProject({
    "package.json": JSON.stringify({ scripts: { test: "node --test", lint: "eslint ." } }),
    ".github/workflows/ci.yml": "on: push\njobs:\n  test:\n    steps:\n      - run: npm test\n",
  });
  const model = await scriptedModel((request) =>
    play(({ role }) => ({ say: role.startsWith("You clarify") ? "R1.\n\nREQUIREMENTS_CLEAR" : "Small." }))(request),
  );
  const env = cleanEnvironment(home, providerEnvironment(model.url));
  const checksIn = async (...words: string[]) =>
    JSON.parse((await swarm([...words, "--json"], project, env)).stdout) as { commands: unknown[]; checks: unknown[] };
  const own = (command: string, from: string) => ({ command, cwd: ".", from, perPackage: false });

  expect((await swarm(["validate"], project, env)).stdout).toContain(
    "Checks:\n  npm run lint — from package.json\n  npm test — from .github/workflows/ci.yml\n",
  );
  const found = [own("npm run lint", "package.json"), own("npm test", ".github/workflows/ci.yml")];
  expect((await checksIn("validate")).commands).toEqual(found);

  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  expect((await swarm(["plan", "Add a greeting"], project, env)).stdout).toMatch(
    /plan\.md\nChecks:\n {2}npm run lint — from package\.json\n/,
  );
  await daemon.json("POST", "/api/squads", { name: "greeters", slug: "greeters", projectPath: project });
  await daemon.json("PATCH", "/api/squads/greeters", { checks: ["make verify"] });
  const chosen = [own("make verify", "io squad set greeters --check")];
  expect((await checksIn("validate")).commands).toEqual(chosen);
  expect((await checksIn("plan", "Add a greeting")).checks).toEqual(chosen);
  await daemon.kill("SIGTERM");
  expect((await checksIn("validate")).commands).toEqual(chosen);

  writeFileSync(join(project, "swarm.config.yaml"), 'checks: ["true"]\npipeline:\n  - phase: implement\n');
  expect((await checksIn("validate")).commands).toEqual([own("true", "swarm.config.yaml")]);
});

test("a message sets a run going, its progress and end reach the conversation that asked, and the daemon shows runs of other processes", {
  timeout: 120_000,
}, async () => {
  const project = makeProject();
  const scripted = play();
  const model = await scriptedModel((request) => {
    const text = lastUserText(request);
    if (text.includes("[via background]")) return { say: `It ended: ${/approved/.exec(text)?.[0]}` };
    if (!text.includes("[via")) return scripted(request);
    if (request.messages.at(-1)?.role === "tool") return { say: "I have started it." };
    return { call: [{ tool: "swarm_run", args: { project_path: project, issue: "Add a greeting" } }] };
  });
  const home = temporaryHome();
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const here = await daemon.follow({ conversation: "here" });
  const elsewhere = await daemon.follow({ conversation: "elsewhere" });
  const asked = await daemon.ask({ text: "build it", conversation: "here" });
  expect(asked).toMatchObject({
    status: "done",
    reply: "I have started it.",
    route: { answered: "delegated", runs: [expect.stringMatching(/^r_/)] },
  });
  const told = await until(
    "the news of the end",
    () => here.of("message.finished").find(({ body }) => (body as unknown as Message).source.channel === "background"),
    60_000,
  );
  expect((told.body as unknown as Message).reply).toBe("It ended: approved");
  expect(here.of("step.finished").length).toBeGreaterThan(5);
  expect(here.of("run.finished")[0]!.body).toMatchObject({ id: asked.route.runs[0], status: "done", outcome: "approved" });
  expect(elsewhere.events.filter(({ event }) => /^(run|step|phase|stream|message)\./.test(event))).toEqual([]);
  expect(await daemon.json<Run>("GET", `/api/runs/${asked.route.runs[0]}`)).toMatchObject({ outcome: "approved" });

  const all = await daemon.follow();
  const other = JSON.parse(
    (await swarm(["Add more", "--json"], project, cleanEnvironment(home, providerEnvironment(model.url)))).stdout,
  ) as Run;
  await until("the other process's run", () => all.of("run.finished").some(({ body }) => body.id === other.id));
  expect((await daemon.json<{ items: Run[] }>("GET", "/api/runs")).items.map(({ id }) => id)).toEqual([
    other.id,
    asked.route.runs[0],
  ]);
  expect(await daemon.json("POST", "/api/runs/validate", { yaml: "pipeline: 3" })).toMatchObject({
    valid: false,
    problems: [expect.objectContaining({ line: 1 })],
  });
  expect((await daemon.fetch("/api/runs/r_nope")).status).toBe(404);
});

test("a squad's decisions go into a run, what the run decided goes into the squad's log, and a killed daemon takes the run up again", {
  timeout: 120_000,
}, async () => {
  const projectPath = makeProject();
  let hold = true;
  const scripted = play(({ role }) => (role === "eng-code-reviewer" && hold ? { hang: true } : undefined));
  const model = await scriptedModel((request) =>
    lastUserText(request).includes("[via background]") ? { say: "I see." } : scripted(request),
  );
  const home = temporaryHome();
  const first = await startDaemonProcess(home, providerEnvironment(model.url));
  await first.json("POST", "/api/squads", { name: "greeters", slug: "greeters", projectPath });
  await first.json("POST", "/api/squads/greeters/decisions", { decision: "Greet warmly" });
  const { id } = await first.json<Run>("POST", "/api/runs", { squad: "greeters", issue: "Add a greeting", conversation: "here" });
  await until("the review", () => model.requests.some((request) => roleOf(request) === "eng-code-reviewer"), 60_000);
  expect(lastUserText(model.requests[0]!)).toContain("Greet warmly");
  await first.kill("SIGKILL");
  hold = false;

  const second = await startDaemonProcess(home, providerEnvironment(model.url));
  const told = await until(
    "the news of the end",
    async () =>
      (await second.json<{ items: Message[] }>("GET", "/api/messages?conversation=here")).items.find(
        ({ status }) => status === "done",
      ),
    60_000,
  );
  expect(told).toMatchObject({ source: { channel: "background", about: id }, text: expect.stringContaining("approved") });
  const drafts = model.requests.filter((request) => roleOf(request) === "pm" && !lastUserText(request).includes("JSON array"));
  expect(drafts).toHaveLength(1);
  const { items } = await second.json<{ items: { decision: string }[] }>("GET", "/api/squads/greeters/decisions");
  expect(items.map(({ decision }) => decision).sort()).toEqual(["English only", "Greet warmly"]);

  await second.kill("SIGTERM");
  const third = await startDaemonProcess(home, providerEnvironment(model.url));
  await third.ask({ text: "[via background] something else", conversation: "here" });
  const all = await third.json<{ items: Message[] }>("GET", "/api/messages?conversation=here");
  expect(all.items.filter(({ source }) => source.channel === "background")).toHaveLength(1);
  expect((await third.json<{ items: unknown[] }>("GET", "/api/squads/greeters/decisions")).items).toHaveLength(2);
});
