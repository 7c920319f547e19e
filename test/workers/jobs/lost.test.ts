import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../../src/engine/rehearsal/server.ts";
import type { Act, ChatRequest } from "../../../src/engine/rehearsal/wire.ts";
import { hasEnvironment } from "../../../src/process/processes.ts";
import { approvalsOf, asked, decide } from "../../support/approvals.ts";
import type { TestDaemon } from "../../support/daemon.ts";
import { type Hosts, startHosts } from "../../support/dispatch/away.ts";
import { createGate } from "../../support/gate.ts";
import { collectEndings, temporaryFolder } from "../../support/home.ts";
import { lastUserText, scriptedModel } from "../../support/model.ts";
import { processesOn } from "../../support/processes.ts";
import { characterOf, delegate, ended, lastResult, project, squadWith, stepOf, systemOf } from "../../support/squads.ts";
import { git, sh } from "../../support/swarm/index.ts";
import { until } from "../../support/until.ts";

const LEASE_MS = 3_000;

const { atTheEnd, end } = collectEndings();
afterAll(end);
let hosts: Hosts;
let model: ModelServer;
/** The command that a task runs, by words in its prompt. */
const commands = new Map<string, string>();
/** The actions of a task that does more than run one command, by words in its prompt. */
const acts = new Map<string, (request: ChatRequest) => Act | Promise<Act>>();
beforeAll(async () => {
  const answer = (request: ChatRequest) => {
    if (!characterOf(request)) return { say: "noted" };
    const act = [...acts].find(([words]) => lastUserText(request).includes(words))?.[1];
    if (act) return act(request);
    const command = [...commands].find(([words]) => lastUserText(request).includes(words))?.[1];
    return stepOf(request) === 0 && command !== undefined ? sh(command) : { say: "Done." };
  };
  model = await scriptedModel(answer, undefined, atTheEnd);
  hosts = await startHosts(model.url, { names: ["w1", "w2", "w3", "w4"], leaseMs: LEASE_MS, atTheEnd });
}, 150_000);

/** Creates a squad with one task, which runs one command or follows a script, and then says something. */
async function withTask(
  slug: string,
  command: string | ((request: ChatRequest) => Act | Promise<Act>),
  safety: Record<string, unknown> = {},
) {
  const { daemon, workers } = hosts;
  const folder = project();
  await squadWith(daemon, folder, slug, ["Engineer"]);
  await daemon.json("PATCH", `/api/squads/${slug}`, { isolation: "worktree", safety });
  if (typeof command === "string") commands.set(`Do ${slug}`, command);
  else acts.set(`Do ${slug}`, command);
  const { id } = await delegate(daemon, slug, { task: `Do ${slug}` });
  /** The worker that has the task, once there is one. */
  const holder = () =>
    until(
      "a worker to be at it",
      () => workers.find(({ left, child }) => child.signalCode === null && left().length > 0),
      60_000,
    );
  const asks = () =>
    model.requests.filter((request) => characterOf(request) && lastUserText(request).includes(`Do ${slug}`)).length;
  return { daemon, folder, id, holder, asks };
}

/** The runtimes that use the sessions of a home. */
const runtimesOf = (home: string) =>
  processesOn(home).filter((pid) => hasEnvironment(pid, "COPILOT_HOME", join(home, "sessions")));
const writeGo = (go: string) => writeFileSync(go, "");
const callsOf = async (daemon: TestDaemon, id: string) =>
  (await daemon.json<{ items: { tool: string; state: string }[] }>("GET", `/api/tasks/${id}/calls`)).items.map(
    ({ tool, state }) => `${tool} ${state}`,
  );

/** A command that records each run and waits until a file exists. */
function held() {
  const place = temporaryFolder();
  const [notes, go] = [join(place, "notes"), join(place, "go")];
  const command = `echo run >> ${notes}; until [ -e ${go} ]; do sleep 0.1; done; echo made > made.txt`;
  return { command, go, runs: () => (existsSync(notes) ? readFileSync(notes, "utf8").split("\n").length - 1 : 0) };
}

test("a budget that is used up by a worker holds it before the next call, and lets it go on when it is raised", async () => {
  const { daemon, id, asks } = await withTask("spent", "true", { budgets: { task: { calls: 1 } } });
  const [question] = await asked(daemon);
  expect(question).toMatchObject({ kind: "budget", owner: { kind: "task", id } });
  expect(asks()).toBe(1);
  await decide(daemon, question!.id, { decision: "allow" });
  expect(await ended(daemon, id, 60_000)).toMatchObject({ status: "done", usage: { calls: 2 } });
}, 180_000);
test("a worker that was frozen past its lease finds its work taken: its command is ended, and nothing it says counts", async () => {
  const { command, go, runs } = held();
  const { daemon, folder, id, holder } = await withTask("frozen", command);
  await until("the command to run", () => runs() === 1, 60_000);
  const first = await holder();
  first.child.kill("SIGSTOP");
  await until("the command to run elsewhere", () => runs() === 2, 60_000);
  first.child.kill("SIGCONT");
  await until("the first to have put everything away", () => first.left().length === 0, 60_000);
  writeGo(go);
  const task = await ended(daemon, id, 60_000);
  expect(task).toMatchObject({ status: "done", attempts: 2 });
  expect(task.worker).not.toBe(first.name);
  expect(git(folder, "rev-list", "--count", `HEAD..io/${id}`)).toBe("1");
}, 180_000);

test("a daemon that is killed finds its worker at work: the command runs once, and its result is taken once", async () => {
  const { command, go, runs } = held();
  const { daemon, folder, id } = await withTask("orphan", command);
  await until("the command to run", () => runs() === 1, 60_000);
  expect(runtimesOf(daemon.home)).toHaveLength(1);
  await daemon.kill("SIGKILL");
  await until("its runtime to end by itself", () => runtimesOf(daemon.home).length === 0, 15_000);
  writeGo(go);
  const again = await hosts.startDaemon();
  hosts = { ...hosts, daemon: again };
  const task = await ended(again, id, 60_000);
  expect(task).toMatchObject({ status: "done", result: "Done.", attempts: 1 });
  expect(runs()).toBe(1);
  expect(await callsOf(again, id)).toEqual(["shell done"]);
  expect(git(folder, "rev-list", "--count", `HEAD..io/${id}`)).toBe("1");
  const usage = await again.json<{ total: { calls: number } }>("GET", `/api/usage?by=task`);
  expect(usage.total.calls).toBeGreaterThanOrEqual(2);
}, 180_000);

test("a worker that is killed in a command is replaced; both attempts are on record, the branch is moved once", async () => {
  const { command, go, runs } = held();
  const { daemon, folder, id, holder } = await withTask("killed", command);
  await until("the command to run", () => runs() === 1, 60_000);
  const first = await holder();
  await first.kill();
  await until("the command to run elsewhere", () => runs() === 2, 60_000);
  writeGo(go);
  const task = await ended(daemon, id, 60_000);
  expect(task).toMatchObject({ status: "done", result: "Done.", attempts: 2 });
  expect(task.worker).not.toBe(first.name);
  expect(await callsOf(daemon, id)).toEqual(["shell unknown", "shell done"]);
  expect(git(folder, "show", `io/${id}:made.txt`)).toBe("made");
  expect(git(folder, "rev-list", "--count", `HEAD..io/${id}`)).toBe("1");
}, 180_000);

test("an approval outlives the worker that asked, is the same for the next, and what it allows runs once", async () => {
  const { command, go, runs } = held();
  writeGo(go);
  const { daemon, id, holder, asks } = await withTask("asked", command, { approvals: "effects" });
  const [question] = await asked(daemon);
  expect(question).toMatchObject({ tool: "shell", command, owner: { kind: "task", id }, state: "waiting" });
  const first = await holder();
  await first.kill();
  const second = await until(
    "another worker to be at it",
    () => holder().then((now) => (now.name === first.name ? undefined : now)),
    60_000,
  );
  await until("it to want the same", () => asks() === 2, 60_000);
  expect((await asked(daemon)).map((each) => each.id)).toEqual([question!.id]);
  expect(runs()).toBe(0);
  expect((await decide(daemon, question!.id, { decision: "allow" })).status).toBe(200);
  expect(await ended(daemon, id, 60_000)).toMatchObject({ status: "done", worker: second.name, attempts: 2 });
  expect(runs()).toBe(1);
}, 180_000);

const logged = async (daemon: TestDaemon, slug: string) =>
  (await daemon.json<{ items: { decision: string }[] }>("GET", `/api/squads/${slug}/decisions`)).items.map(
    ({ decision }) => decision,
  );
const log = (decision: string): Act => ({ call: [{ tool: "squad_log_decision", args: { decision } }] });

test("what the daemon did for a worker that is then killed is not done again: the next is told of it, and answered from the record", async () => {
  const gate = createGate();
  const begun: string[] = [];
  const answers: string[] = [];
  const { daemon, id, holder } = await withTask("recorded", async (request) => {
    if (stepOf(request) === 0) {
      begun.push(systemOf(request));
      return log("Tabs, not spaces");
    }
    answers.push(lastResult(request));
    if (answers.length === 1) await gate.opened;
    return { say: "Done." };
  });
  await until("the first worker to have its answer", () => answers.length === 1, 60_000);
  expect(await logged(daemon, "recorded")).toEqual(["Tabs, not spaces"]);
  const first = await holder();
  await first.kill();
  const task = await ended(daemon, id, 90_000);
  gate.open();
  expect(task).toMatchObject({ status: "done", attempts: 2 });
  expect(task.worker).not.toBe(first.name);
  expect(await logged(daemon, "recorded")).toEqual(["Tabs, not spaces"]);
  expect(answers).toHaveLength(2);
  expect(answers[1]).toBe(answers[0]);
  expect(await callsOf(daemon, id)).toEqual(["squad_log_decision done"]);
  expect(begun[0]).not.toContain("Tabs, not spaces");
  expect(begun[1]).toMatch(/squad_log_decision .*Tabs, not spaces.* → done: Logged at/);
}, 180_000);

test("what the daemon did is not done again when the worker's runtime dies before it has the answer", async () => {
  const { daemon, id, holder } = await withTask(
    "runtime",
    (request) => (stepOf(request) === 0 ? log("Spaces, not tabs") : { say: "Done." }),
    { approvals: "effects" },
  );
  const [question] = await asked(daemon);
  const { home, child } = await holder();
  const [runtime] = runtimesOf(home).filter((pid) => pid !== child.pid);
  process.kill(runtime!, "SIGSTOP");
  await decide(daemon, question!.id, { decision: "allow" });
  await until("the daemon to have done it", async () => (await callsOf(daemon, id)).includes("squad_log_decision done"));
  process.kill(runtime!, "SIGKILL");
  expect(await ended(daemon, id, 90_000)).toMatchObject({ status: "done", attempts: 1 });
  expect(await logged(daemon, "runtime")).toEqual(["Spaces, not tabs"]);
  expect(await callsOf(daemon, id)).toEqual(["squad_log_decision done"]);
  expect((await approvalsOf(daemon)).filter(({ owner }) => owner.id === id)).toHaveLength(1);
}, 180_000);
