import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import type { ChatRequest } from "../../src/engine/rehearsal/wire.ts";
import { asked, decide } from "../support/approvals.ts";
import type { TestDaemon } from "../support/daemon.ts";
import { type Hosts, startHosts } from "../support/dispatch/away.ts";
import { collectEndings, temporaryFolder } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { characterOf, delegate, ended, project, squadWith, stepOf } from "../support/squads.ts";
import { git, sh } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const LEASE_MS = 3_000;

const { atTheEnd, end } = collectEndings();
afterAll(end);
let hosts: Hosts;
let model: ModelServer;
/** What a task does, by its words. */
const commands = new Map<string, string>();
beforeAll(async () => {
  const answer = (request: ChatRequest) => {
    if (!characterOf(request)) return { say: "noted" };
    const command = [...commands].find(([words]) => lastUserText(request).includes(words))?.[1];
    return stepOf(request) === 0 && command !== undefined ? sh(command) : { say: "Done." };
  };
  model = await scriptedModel(answer, undefined, atTheEnd);
  hosts = await startHosts(model.url, { names: ["w1", "w2", "w3"], leaseMs: LEASE_MS, atTheEnd });
}, 150_000);

/** A squad of its own whose one task runs one command and says something. */
async function withTask(slug: string, command: string, safety: Record<string, unknown> = {}) {
  const { daemon, workers } = hosts;
  const folder = project();
  await squadWith(daemon, folder, slug, ["Engineer"]);
  await daemon.json("PATCH", `/api/squads/${slug}`, { isolation: "worktree", safety });
  commands.set(`Do ${slug}`, command);
  const { id } = await delegate(daemon, slug, { task: `Do ${slug}` });
  /** The worker that is at it, once there is one. */
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

const writeGo = (go: string) => writeFileSync(go, "");
const callsOf = async (daemon: TestDaemon, id: string) =>
  (await daemon.json<{ items: { tool: string; state: string }[] }>("GET", `/api/tasks/${id}/calls`)).items.map(
    ({ tool, state }) => `${tool} ${state}`,
  );

/** A command that notes each time it is run, and goes on until a file is there. */
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
  await daemon.kill("SIGKILL");
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
