import { afterAll, beforeAll, expect, test } from "vitest";
import type { Model } from "../../src/engine/rehearsal/wire.ts";
import type { Status } from "../../src/protocol/api.ts";
import type { Message } from "../../src/protocol/messages.ts";
import type { Run, RunSummary } from "../../src/protocol/runs.ts";
import type { Task } from "../../src/protocol/squads.ts";
import { asked, decide } from "../support/approvals.ts";
import { providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../support/model.ts";
import { characterOf, delegate, ended, project, squadWith } from "../support/squads.ts";
import { play, sh } from "../support/swarm/index.ts";
import { ON_BRANCH } from "../support/swarm/pipelines.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

const pipeline = play(({ role, afterTool }) => (role === "engineer" && !afterTool ? sh("echo once >> counted.txt") : undefined));
/** Agents and answers to a person run a command first; reports of ended work are only noted. */
const model: Model = (request) => {
  const isAgent = characterOf(request) !== undefined;
  const said = lastUserText(request);
  if (!isAgent && !said.includes("[via ")) return pipeline(request);
  const works = isAgent || said.includes("[via api]");
  return works && !isAfterTool(request)
    ? { call: [{ tool: "shell", args: { command: "echo once > made.txt" } }] }
    : { say: "It ran." };
};

let home: string;
let daemon: TestDaemon;
const io = async (...args: string[]) => (await runIo(args, home)).stdout;
const document = async <T>(...args: string[]) => JSON.parse(await io(...args, "--json")) as T;

beforeAll(async () => {
  home = temporaryHome({ approvals: "effects" }, atTheEnd);
  daemon = await startDaemonProcess(home, providerEnvironment((await scriptedModel(model, {}, atTheEnd)).url), atTheEnd);
  await squadWith(daemon, project(undefined, atTheEnd), "shop", ["Engineer"]);
}, 60_000);

test("a task, a run and a message that wait for a person say so with one mark and word, in lists, alone, as JSON and in io status", async () => {
  const files = { "swarm.config.yaml": ON_BRANCH, "README.md": "A project.\n", Makefile: "test:\n\t@true\n" };
  const { id: run } = await daemon.json<Run>("POST", "/api/runs", { projectPath: project(files, atTheEnd), issue: "Count" });
  const { id: task } = await delegate(daemon, "shop", { task: "Count" });
  const { id: message } = await daemon.json<Message>("POST", "/api/messages", { text: "Count", conversation: "counting" });
  const questions = await asked(daemon, 3);
  const waitsFor = (id: string) => ({
    kind: "approval",
    approvals: questions.filter(({ owner }) => owner.id === id).map((question) => question.id),
  });

  expect(await io("task", "list")).toContain(`${task}  ? waits for you  shop/`);
  expect(await io("task", "show", task)).toMatch(
    new RegExp(`^${task}  \\? waits for you .*\\nWaits for you: io approval show \\w+\\n`),
  );
  expect(await io("swarm", "list")).toMatch(new RegExp(`^${run} .* \\? waits for you +Count\\n`));
  expect(await io("swarm", "show", run)).toMatch(
    new RegExp(`^\\? Run ${run}: waits for you\\nWaits for you: io approval show \\w+\\n`),
  );
  expect(await io("conversation", "show", "counting")).toContain("Count\n(waits for you)\n");
  expect(await io("conversation", "list")).toMatch(/^counting {2}1 message {2}\? waits for you {2}last /m);
  expect(await io("status")).toMatch(
    /Messages: 1 running \(1 of them waits for you\), 0 queued;.*\nSquads: 1, with 1 tasks: 1 running \(1 of them waits for you\), 0 queued\nSwarm runs: 1 running \(1 of them waits for you\)\n/,
  );

  expect((await document<{ items: Task[] }>("task", "list")).items).toMatchObject([{ id: task, waitsFor: waitsFor(task) }]);
  expect(await document<Task>("task", "show", task)).toMatchObject({ status: "running", waitsFor: waitsFor(task) });
  expect((await document<{ items: RunSummary[] }>("swarm", "list")).items).toMatchObject([{ id: run, waitsFor: waitsFor(run) }]);
  expect(await document<Run>("swarm", "show", run)).toMatchObject({ status: "running", waitsFor: waitsFor(run) });
  expect(await daemon.json("GET", `/api/messages/${message}`)).toMatchObject({ waitsFor: waitsFor(message) });
  expect((await document<Status>("status")).counts).toMatchObject({ messagesHeld: 1, tasksHeld: 1, runsHeld: 1, runsRunning: 1 });

  for (const { id } of questions) await decide(daemon, id, { decision: "allow" });
  expect(await ended(daemon, task)).not.toHaveProperty("waitsFor");
  expect(await io("task", "list")).toContain(`${task}  ! done, unproven`);
  await until("the run's end", async () => (await daemon.json<Run>("GET", `/api/runs/${run}`)).finishedAt !== null, 60_000);
  expect(await io("swarm", "show", run)).toMatch(new RegExp(`^✓ Run ${run}: done, approved\\n`));
  expect((await document<Status>("status")).counts).not.toHaveProperty("tasksHeld");
}, 120_000);

test("every task that a used-up day holds up says that it waits for a budget, whichever of them was asked about", async () => {
  await squadWith(daemon, project(undefined, atTheEnd), "barn", ["Engineer"]);
  await io("budget", "set", "day", "--calls", "1");
  const { id: first } = await delegate(daemon, "shop", { task: "Count again" });
  const { id: second } = await delegate(daemon, "barn", { task: "Count too" });
  const [question] = await asked(daemon, 1);
  await until("both to have begun", async () => {
    const { items } = await daemon.json<{ items: Task[] }>("GET", "/api/tasks?status=running");
    return items.length === 2;
  });
  const list = await io("task", "list");
  for (const id of [first, second]) expect(list).toContain(`${id}  ? waits for you (budget)  `);
  expect((await document<Task>("task", "show", second)).waitsFor).toEqual({ kind: "budget", approvals: [question!.id] });
  await io("budget", "set", "day", "--off");
  const [one, other] = await asked(daemon, 2);
  for (const { id } of [one!, other!]) await decide(daemon, id, { decision: "deny" });
  for (const id of [first, second]) await ended(daemon, id);
}, 120_000);
