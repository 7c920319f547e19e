import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import type { ChatRequest } from "../../src/engine/rehearsal/wire.ts";
import type { Run } from "../../src/protocol/runs.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { layHooks, layLoot, makeHostile, poison } from "../support/hostile-repository.ts";
import { scriptedModel } from "../support/model.ts";
import { filesBelow, modelCalls, obedient } from "../support/orchestrator.ts";
import { ensureProgram } from "../support/program.ts";
import { characterOf, delegate, ended, project, squadWith, stepOf } from "../support/squads.ts";
import { play, sh, task } from "../support/swarm/index.ts";
import { both, engineer, split, YAML } from "../support/swarm/streams.ts";
import { until } from "../support/until.ts";

/** Requires git, and a bubblewrap that works for the user who runs the tests. */
await Promise.all([ensureProgram("bwrap", "bubblewrap"), ensureProgram("git")]);

const home = realpathSync(temporaryHome({}, afterAll));
const user = realpathSync(temporaryFolder(afterAll));
const desk = realpathSync(temporaryFolder(afterAll));
const loot = await layLoot(join(desk, "loot"), home, afterAll);
const traces = join(desk, "traces");
mkdirSync(traces);

const PLANTED = {
  known: "scripted-key-0123456789",
  shaped: `ghp_${"k9Z".repeat(12)}`,
  inAddress: "canary-in-an-address-71",
  random: `q7Wm${"Xy3Pd8".repeat(6)}`,
};
const planted = () => [...Object.values(PLANTED), daemon.token];

/** The user's own git settings, as a model could have written them. */
poison(join(user, ".gitconfig"), "user", loot, {
  "core.hooksPath": layHooks(join(desk, "hooks"), "user", loot),
  "core.attributesFile": join(desk, "attributes"),
  "init.templateDir": join(desk, "template"),
  "filter.users.clean": loot.by("user:filter-clean"),
  "trace2.eventTarget": join(traces, "of-settings"),
  "trace2.normalTarget": join(traces, "of-settings"),
  "user.name": "Ada",
  "user.email": "ada@example.invalid",
});
writeFileSync(join(desk, "attributes"), "* filter=users\n");
layHooks(join(desk, "template", "hooks"), "template", loot);

/** Variables as a careless start could have set them. */
const variables = {
  GIT_TRACE2_EVENT: join(traces, "of-variables"),
  GIT_TRACE: join(traces, "of-variables"),
  GIT_EXTERNAL_DIFF: loot.by("variable:external-diff"),
  GIT_CONFIG_PARAMETERS: `'core.fsmonitor'='${loot.by("variable:fsmonitor")}'`,
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "core.fsmonitor",
  GIT_CONFIG_VALUE_0: loot.by("variable:counted-fsmonitor"),
  GIT_PAGER: loot.by("variable:pager"),
  GIT_EDITOR: loot.by("variable:editor"),
  GIT_TEMPLATE_DIR: join(desk, "template"),
};

const pipeline = play(
  both(
    split(task("T1", "One"), task("T2", "Two")),
    engineer((name) =>
      // The agent redirects git from its worktree to another repository, whose settings start a program.
      name === "T2"
        ? sh(`echo two > T2.txt; rm -f .git; echo "gitdir: ${desk}/elsewhere" > .git`)
        : sh("echo one > T1.txt; echo changed > shared.txt"),
    ),
  ),
);
const isOrchestrator = ({ tools = [] }: ChatRequest) => tools.some((one) => one.function.name === "squad_analyze");
const model = await scriptedModel(
  (request: ChatRequest, ...rest) => {
    if (characterOf(request))
      return stepOf(request) === 0 ? sh("echo more >> notes.txt; echo new > fresh.txt") : { say: "Done." };
    return isOrchestrator(request) ? obedient(request, ...rest) : pipeline(request);
  },
  {},
  afterAll,
);
const daemon: TestDaemon = await startDaemonProcess(
  home,
  {
    ...providerEnvironment(model.url),
    ...variables,
    HOME: user,
    DEPLOY_NOTE: PLANTED.shaped,
    GREETING: PLANTED.known,
    MIRROR: `https://deploy:${PLANTED.inAddress}@mirror.invalid/`,
    COLOUR: PLANTED.random,
  },
  afterAll,
);
const call = (tool: string, args: unknown) => modelCalls(daemon, model, tool, args);

function hostileProject(files: Record<string, string> = {}): string {
  const folder = project({ "notes.txt": "one\n", "shared.txt": "same\n", "package.json": '{"name":"p"}\n', ...files });
  makeHostile(folder, loot);
  return folder;
}

/**
 * Expects that nothing was started except what git cannot be told to ignore, and that no secret was seen and nothing traced.
 */
function expectHeld(allowed: RegExp): void {
  expect(loot.ran().filter((name) => !allowed.test(name))).toEqual([]);
  expect(loot.wrote()).toBe(false);
  for (const secret of planted()) expect(loot.seen().includes(secret)).toBe(false);
  expect(readdirSync(traces).map((file) => readFileSync(join(traces, file), "utf8"))).toEqual([]);
}

async function runToItsEnd(projectPath: string): Promise<Run> {
  const { read } = await call("swarm_run", { project_path: projectPath, issue: "Do it" });
  const id = /r_[0-9a-z]+/.exec(read)?.[0] ?? read;
  const look = async () => {
    const run = await daemon.json<Run>("GET", `/api/runs/${id}`);
    return run.finishedAt === null ? undefined : run;
  };
  return (await until(`run ${id} to end`, look, 60_000))!;
}

test("the traps are live: a plain git in such a repository, with such settings, falls into them", async () => {
  const folder = project({ "notes.txt": "one\n" });
  const own = await layLoot(join(desk, "trial"), home, onTestFinished);
  makeHostile(folder, own);
  writeFileSync(join(folder, "notes.txt"), "changed\n");
  const plain = (...args: string[]) => {
    try {
      execFileSync("git", args, { cwd: folder, env: { PATH: process.env.PATH, HOME: user }, stdio: "ignore" });
    } catch {
      // A triggered trap may make the command fail.
    }
  };
  plain("add", "-A");
  plain("diff", "HEAD");
  plain("-c", "commit.gpgSign=true", "commit", "-m", "x");
  await until("the traps to tell", () => own.ran().length >= 4);
  expect([own.ran().includes("filter-clean"), own.wrote()]).toEqual([true, true]);
  expect(existsSync(join(traces, "of-settings"))).toBe(true);
  for (const file of readdirSync(traces)) rmSync(join(traces, file));
  for (const file of ["told", "written"]) rmSync(join(desk, "loot", file), { force: true });
});

test("squad_analyze of a hostile repository starts nothing and tells what the project is", async () => {
  const { read } = await call("squad_analyze", { project_path: hostileProject() });
  expect(read).toContain("a git repository; ignored files left out");
  expectHeld(/^$/);
});

test("squad_delegate looks at a hostile repository before and after, and what its filters start sees no secret", async () => {
  const folder = hostileProject();
  const [name] = await squadWith(daemon, folder, "yard", ["Engineer"]);
  const { id } = await delegate(daemon, "yard", { task: "Write it down", agent: name! });
  const { evidence } = await ended(daemon, id);
  expect(evidence?.filesChanged.sort()).toEqual(["fresh.txt", "notes.txt"]);
  await until("the filter to tell", () => loot.ran().includes("filter-clean"));
  expect(loot.seen()).toContain("GIT_CONFIG_GLOBAL=/dev/null");
  expectHeld(/^filter-clean$/);
});

test("swarm_run leaves its work on a branch in the user's name, and nothing but the repository's filters and drivers ran", async () => {
  const elsewhere = join(desk, "elsewhere");
  execFileSync("git", ["init", "-q", "--bare", elsewhere], { env: { PATH: process.env.PATH } });
  const theirs = { "filter.theirs.clean": loot.by("engineer:filter"), "core.bare": "false" };
  poison(join(elsewhere, "config"), "engineer", loot, theirs);
  cpSync(join(hostileProject(), ".git", "info", "attributes"), join(elsewhere, "info", "attributes"), { recursive: true });
  const folder = hostileProject({
    "swarm.config.yaml": YAML("", `checks: ["cat secret-notes; env"]`),
    "secret-notes": `It is ${PLANTED.known}, or ${PLANTED.shaped}\n`,
  });
  const run = await runToItsEnd(folder);
  expect(run).toMatchObject({ status: "done", outcome: "approved" });
  const bare = ["--git-dir", join(folder, ".git")];
  const git = (...args: string[]) =>
    execFileSync("git", [...bare, ...args], { env: { PATH: process.env.PATH }, cwd: desk, encoding: "utf8" }).trim();
  expect(git("ls-tree", "--name-only", run.branch!)).toContain("T1.txt\nT2.txt");
  expect(git("log", "--no-show-signature", "-1", "--format=%an <%ae>", run.branch!)).toBe("Ada <ada@example.invalid>");
  expectHeld(/^(?:filter-clean|filter-smudge|merge-driver)$/);

  expect(JSON.stringify(run)).toContain("It is [secret], or [secret]");
  const logs = filesBelow(join(home, "logs")).map((file) => readFileSync(file, "utf8"));
  for (const secret of planted())
    for (const text of [JSON.stringify(run), daemon.output(), ...model.bodies, ...logs])
      expect(text.includes(secret)).toBe(false);
}, 120_000);

test("a repository that claims to lie in IO's own folder is none to work with", async () => {
  const folder = project({ "a.txt": "a\n", "swarm.config.yaml": YAML() });
  const inside = join(home, "runs", "r_none", "shadow.git");
  mkdirSync(join(home, "runs", "r_none"));
  renameSync(join(folder, ".git"), join(desk, "moved.git"));
  cpSync(join(desk, "moved.git"), inside, { recursive: true });
  writeFileSync(join(folder, ".git"), `gitdir: ${inside}\n`);
  const before = await daemon.json<{ items: Run[] }>("GET", "/api/runs");
  const { read } = await call("swarm_run", { project_path: folder, issue: "Do it" });
  expect(read).toMatch(/where IO keeps its own files|not a git repository/);
  expect(await daemon.json("GET", "/api/runs")).toEqual(before);
});
