import { existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { type Model, textOf } from "../../../src/engine/rehearsal/wire.ts";
import type { Approval } from "../../../src/protocol/approvals.ts";
import type { Task } from "../../../src/protocol/squads.ts";
import { approvalsOf, asked, decide, finishedTask } from "../../support/approvals.ts";
import { startCluster, startWorker } from "../../support/cluster.ts";
import { providerEnvironment } from "../../support/daemon.ts";
import { temporaryFolder } from "../../support/home.ts";
import { lastUserText, scriptedModel } from "../../support/model.ts";
import { ensureProgram } from "../../support/program.ts";
import { characterOf, delegate, project, squadWith } from "../../support/squads.ts";

await ensureProgram("bwrap", "bubblewrap");

type Calls = [string, unknown][];
/** An agent that makes the calls in its task, then repeats the results. */
const agent: Model = (request) => {
  const begun = request.messages.findLastIndex(({ role }) => role === "user");
  const results = request.messages.slice(begun).flatMap((each) => (each.role === "tool" ? [textOf(each)] : []));
  const [, script = "[]"] = /calls (\[.*\])/.exec(lastUserText(request)) ?? [];
  if (!characterOf(request) || results.length > 0) return { say: results.join("\n") || "noted" };
  return { call: (JSON.parse(script) as Calls).map(([tool, args]) => ({ tool, args })) };
};
const model = await scriptedModel(agent, undefined, afterAll);
/** The home of the person who runs the workers, which no job may touch. */
const theirs = realpathSync(temporaryFolder(afterAll));
mkdirSync(join(theirs, ".ssh"));
writeFileSync(join(theirs, ".ssh/id_ed25519"), "a private key");
const cluster = await startCluster(afterAll, {
  env: { ...providerEnvironment(model.url), HOME: theirs },
  config: { mode: "auto", dispatch: "workers" },
});
const { daemon } = cluster;
const shell = (command: string, more: Record<string, unknown> = {}): [string, unknown] => ["shell", { command, ...more }];
const squad = async (slug: string) => {
  await squadWith(daemon, project({ "a.txt": "a\n", "b.txt": "b\n" }, afterAll), slug, ["Engineer"]);
  await daemon.json("PATCH", `/api/squads/${slug}`, { isolation: "worktree" });
};
const begin = async (slug: string, calls: Calls): Promise<Task> =>
  delegate(daemon, slug, { task: `calls ${JSON.stringify(calls)}` });
const told = async (slug: string, calls: Calls) => (await finishedTask(daemon, (await begin(slug, calls)).id)).result!;
const ask = async (slug: string, calls: Calls): Promise<{ task: Task; question: Approval }> => {
  const task = await begin(slug, calls);
  const [question] = await asked(daemon);
  return { task, question: question! };
};

test("on a worker a task keeps to its mode: in auto commands stay in the project, and only what a person allowed leaves it", async () => {
  const alpha = await cluster.join("alpha");
  await squad("web");
  const kept = join(theirs, "kept.txt");
  const key = join(theirs, ".ssh/id_ed25519");
  const inside = await told("web", [
    shell(`cat a.txt > copy.txt && cat copy.txt; touch ${kept}; cat ${key}`),
    ["file_ops", { operation: "read", path: key }],
    ["file_ops", { operation: "write", path: kept, content: "x" }],
    ["file_ops", { operation: "move", path: "b.txt", to: "moved.txt" }],
  ]);
  expect(existsSync(kept)).toBe(false);
  expect(inside).toContain("The sandbox refused this");
  expect(inside).not.toContain("a private key");
  expect(inside).toContain("files are read and written in the project alone");
  expect(inside).toContain("moved.txt");
  expect(await approvalsOf(daemon)).toEqual([]);

  const { task, question } = await ask("web", [shell(`touch ${kept}`, { outside: true })]);
  expect(question.rule).toBe(`wall: it wants to run outside the sandbox on the worker alpha, and names ${kept}`);
  expect(existsSync(kept)).toBe(false);
  await decide(daemon, question.id, { decision: "allow" });
  expect(await finishedTask(daemon, task.id)).toMatchObject({ status: "done", worker: "alpha" });
  expect(existsSync(kept)).toBe(true);

  await daemon.json("PATCH", "/api/squads/web", { safety: { mode: "plan" } });
  await told("web", [shell("touch planned.txt"), ["file_ops", { operation: "write", path: "planned.txt", content: "x" }]]);
  const offered = model.requests.findLast((request) => characterOf(request))!.tools!.map(({ function: { name } }) => name);
  expect(offered).toContain("file_ops");
  expect(offered).not.toContain("shell");
  await daemon.json("PATCH", "/api/squads/web", { safety: { mode: "ask" } });
  const first = await ask("web", [shell("touch here.txt")]);
  await decide(daemon, first.question.id, { decision: "deny" });
  expect((await finishedTask(daemon, first.task.id)).result).toContain("a person was asked and denied it");
  await daemon.json("PATCH", "/api/squads/web", { safety: { mode: null } });

  // The global mode applies from the next call on.
  await daemon.json("PATCH", "/api/config", { mode: "full" });
  await told("web", [shell(`touch ${kept}-full`)]);
  expect(existsSync(`${kept}-full`)).toBe(true);
  await daemon.json("PATCH", "/api/config", { mode: "auto" });
  await alpha.kill();
}, 150_000);

test("on a worker without bubblewrap every command is asked for in auto, and a sandbox that its owner set is not left", async () => {
  const bin = temporaryFolder();
  for (const program of ["sh", "bash", "git", "cat", "touch", "env", "ps"])
    symlinkSync(
      ["/usr/bin", "/bin"].map((folder) => join(folder, program)).find((path) => existsSync(path))!,
      join(bin, program),
    );
  symlinkSync(process.execPath, join(bin, "node"));
  const bare = { PATH: bin };
  const beta = await cluster.join("beta", [], undefined, bare);
  expect((await cluster.workers()).find(({ name }) => name === "beta")).toMatchObject({ wall: "none" });
  await squad("bare");
  const { task, question } = await ask("bare", [shell("cat a.txt")]);
  expect(question.rule).toBe("wall: there is no sandbox on the worker beta, and it may do more than read");
  await decide(daemon, question.id, { decision: "allow" });
  expect((await finishedTask(daemon, task.id)).result).toContain("exit code: 0");

  await beta.kill();
  writeFileSync(join(beta.home, "config.json"), JSON.stringify({ sandbox: "project" }), { mode: 0o600 });
  startWorker(beta.home, [], undefined, { env: { ...providerEnvironment(model.url), HOME: theirs, ...bare } });
  const second = await ask("bare", [shell("touch made.txt")]);
  await decide(daemon, second.question.id, { decision: "allow" });
  expect((await finishedTask(daemon, second.task.id)).result).toContain("commands are to run in a sandbox");
}, 150_000);
