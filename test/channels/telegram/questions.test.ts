import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Model } from "../../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import type { Task } from "../../../src/protocol/squads.ts";
import { approvalsOf, asked } from "../../support/approvals.ts";
import { temporaryHome } from "../../support/home.ts";
import { isAfterTool, lastUserText } from "../../support/model.ts";
import { inDatabase } from "../../support/orchestrator.ts";
import { makeProject, play } from "../../support/swarm/index.ts";
import { telegraphed } from "../../support/telegram/daemon.ts";
import { createPerson } from "../../support/telegram/person.ts";
import { until } from "../../support/until.ts";

const THEN = "then";
const ASKS = { approvalRules: [{ tool: "shell", match: "echo *", [THEN]: "ask" }] };
const shells: Model = (request) =>
  isAfterTool(request)
    ? { say: "Done with it." }
    : { call: [{ tool: "shell", args: { command: `echo ${/run (\w+)/.exec(lastUserText(request))?.[1]}` } }] };

test("a question comes with its command and folder and two buttons far apart; a press decides it, once, and takes them away", async () => {
  const { owner, api, daemon } = await telegraphed(shells, { config: ASKS });
  owner.send("run first");
  const question = await owner.sees(/wants to use shell/);
  expect(question).toMatchObject({ silent: false, text: expect.stringMatching(/ {4}echo first\n[\s\S]* {2}in \//) });
  expect(question.buttons.map((row) => row.map(({ text }) => text))).toEqual([["✅ Allow"], ["Why is this asked?"], ["⛔ Deny"]]);
  for (const { data } of question.buttons.flat()) expect(Buffer.byteLength(data)).toBeLessThanOrEqual(64);

  const eve = createPerson(api, 666);
  const stolen = eve.press(question, /Allow/);
  expect(await eve.answered(stolen)).toEqual({ text: "This is not yours to decide.", alert: true });
  expect(await approvalsOf(daemon, "waiting")).toHaveLength(1);

  expect((await owner.answered(owner.press(question, /Why/))).text).toMatch(/^Asked because of /);
  const allow = question.buttons.flat()[0]!.data;
  const first = owner.pressData(question, allow);
  const second = owner.pressData(question, allow);
  expect((await owner.answered(first)).text).toMatch(/^\w{5} is allowed\.$/);
  expect(await owner.answered(second)).toMatchObject({ text: expect.stringMatching(/is allowed already/), alert: true });
  await owner.sees(/^Done with it\.$/);
  await until("the buttons to go", () => question.buttons.length === 0 && /allowed by telegram:4242/.test(question.text));
  expect((await approvalsOf(daemon, "allowed"))[0]).toMatchObject({ decidedBy: "telegram:4242" });
});

test("one that expired says so, one that was decided elsewhere loses its buttons, and a denial reaches the model", async () => {
  const { owner, daemon, home, model } = await telegraphed(shells, { config: ASKS });
  owner.send("run first");
  const question = await owner.sees(/echo first/);
  const { id } = (await approvalsOf(daemon, "waiting"))[0]!;
  inDatabase(home, (db) => db.prepare("UPDATE approvals SET expires_at = '2020-01-01T00:00:00.000Z' WHERE id = ?").run(id));
  const query = owner.press(question, /Allow/);
  expect(await owner.answered(query)).toMatchObject({ text: expect.stringMatching(/is expired already/), alert: true });
  await until("the buttons to go", () => question.buttons.length === 0);

  owner.send("run second");
  const other = await owner.sees(/echo second/);
  const [waiting] = await approvalsOf(daemon, "waiting");
  await daemon.json("POST", `/api/approvals/${waiting!.id}`, { decision: "deny", note: "not on a Sunday" });
  await until("the buttons to go", () => other.buttons.length === 0 && /denied by api/.test(other.text));
  await until("the model to be told", () => JSON.stringify(model.requests.at(-1)!.messages).includes("not on a Sunday"));

  owner.send("run third");
  await owner.sees(/echo third/);
  const [third] = await approvalsOf(daemon, "waiting");
  owner.send("/approvals");
  await owner.sees(new RegExp(`^Waiting for you\\n• ${third!.id}`));
  await daemon.json("POST", "/api/messages", { text: "run fourth", conversation: "aside" });
  const [fourth] = await asked(daemon, 2);
  owner.send("/approvals");
  // Nobody wants to type an id on a phone.
  const both = await until("the buttons of both", () => owner.shown().find(({ buttons }) => buttons.length === 6));
  expect((await owner.answered(owner.press(both, new RegExp(`Deny ${fourth!.id}`)))).text).toBe(`${fourth!.id} is denied.`);
  owner.send(`/deny ${third!.id} later, perhaps`);
  await owner.sees(new RegExp(`^${third!.id} is denied`));
  owner.send(`/allow ${third!.id}`);
  await owner.sees(new RegExp(`^${third!.id} is denied already`));
});

test("a long diff comes as a file, with its beginning, its end and the buttons in the message, and an allowance writes what it showed", async () => {
  const folder = temporaryHome();
  const lines = Array.from({ length: 500 }, (_, index) => `line number ${index}`);
  const path = join(folder, "long.txt");
  const { owner } = await telegraphed(
    (request) =>
      isAfterTool(request)
        ? { say: "Written." }
        : { call: [{ tool: "file_ops", args: { operation: "write", path, content: lines.join("\n") } }] },
    { config: { approvalRules: [{ tool: "file_ops", match: "*", [THEN]: "ask" }] } },
  );
  owner.send("write it");
  const file = await until("the file", () => owner.shown().find(({ document }) => document));
  const question = await owner.sees(/wants to use file_ops/);
  expect(question.text).toMatch(
    /\+line number 0\n[\s\S]* … \(\d+ characters not shown\) … [\s\S]*\+line number 499\n[\s\S]*… \(all of it: \w{5}\.txt\)/,
  );
  expect(question.text.length).toBeLessThanOrEqual(4_096);
  expect(file.document!.name).toMatch(/^\w{5}\.txt$/);
  expect(file.silent).toBe(true);
  for (const line of lines) expect(file.document!.content.toString()).toContain(`+${line}\n`);
  expect(existsSync(path)).toBe(false);
  owner.press(question, /Allow/);
  await owner.sees(/^Written\.$/);
  expect(readFileSync(path, "utf8")).toBe(lines.join("\n"));
  await until("the buttons to go", () => question.buttons.length === 0);
  expect(owner.shown().filter(({ document }) => document)).toHaveLength(1);
});

test("one conversation at two places: each is told what it asked for, a task, a run's end, and nothing of the other's", {
  timeout: 120_000,
}, async () => {
  const project = makeProject();
  const scripted = play();
  const model: Model = (request) => {
    const text = lastUserText(request);
    if (text.includes("[via background]")) return { say: `The end of ${/run has ended/.test(text) ? "the run" : "the task"}.` };
    if (/Task t_\w+: /.test(text)) return { say: "I looked." };
    if (!text.includes("[via ")) return scripted(request);
    if (isAfterTool(request)) return { say: "It is on its way." };
    return /build/.test(text)
      ? { call: [{ tool: "swarm_run", args: { project_path: project, issue: "Add a greeting" } }] }
      : { call: [{ tool: "squad_delegate", args: { slug: "crew", task: "look around" } }] };
  };
  const { owner, daemon } = await telegraphed(model);
  await daemon.json("POST", "/api/squads", { name: "Crew", slug: "crew", projectPath: temporaryHome() });
  await daemon.json("POST", "/api/squads/crew/agents", { roleTitle: "Engineer", charter: "All of it." });
  owner.send("build it");
  await owner.sees(/^It is on its way\.$/);
  expect(await daemon.ask({ text: "delegate it", source: "tui" })).toMatchObject({ reply: "It is on its way." });
  const end = await owner.sees(/^The end of the run\.$/, 90_000);
  expect(end.silent).toBe(false);
  const ends = await until("the task's end", async () => {
    const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages");
    return items.find(({ reply }) => reply === "The end of the task.");
  });
  expect(ends.conversation).toBe("main");
  owner.send("/runs");
  await owner.sees(/^Runs, newest first\n✓ r_\w+ approved: Add a greeting/);
  const told = owner.shown().map(({ text }) => text.split("\n")[0]);
  expect(told.filter((text) => !text!.startsWith("⚙"))).toEqual([
    "It is on its way.",
    "The end of the run.",
    "Runs, newest first",
  ]);
  // Both messages offer to open a pull request. This project has no forge, so the attempt is answered with that.
  const [run] = (await daemon.json<{ items: { id: string }[] }>("GET", "/api/runs")).items;
  const list = owner.shown().find(({ text }) => text.startsWith("Runs, newest first"))!;
  expect((await owner.answered(owner.press(list, /^Open a pull request of r_/))).text).toContain(
    `The pull request of ${run!.id} is`,
  );
  expect(end.buttons.flat().map(({ text }) => text)).toEqual(["Open a pull request"]);
  await owner.sees(new RegExp(`No pull request for ${run!.id}: .* has no remote on a forge`), 60_000);
});

test("a task comes with buttons to cancel it and to see its evidence, and its end comes to the chat that asked", async () => {
  const model: Model = (request) => {
    const text = lastUserText(request);
    if (/Task t_\w+: wait/.test(text)) return { stall: "waiting" };
    if (/Task t_\w+: look/.test(text))
      return isAfterTool(request) ? { say: "I looked." } : { call: [{ tool: "shell", args: { command: "echo looked" } }] };
    if (/delegate/.test(text) && !isAfterTool(request))
      return { call: [{ tool: "squad_delegate", args: { slug: "crew", task: /delegate (\w+)/.exec(text)![1] } }] };
    return { say: /\[via background\]/.test(text) ? "It has ended." : "On its way." };
  };
  const { owner, daemon } = await telegraphed(model);
  await daemon.json("POST", "/api/squads", { name: "Crew", slug: "crew", projectPath: temporaryHome() });
  await daemon.json("POST", "/api/squads/crew/agents", { roleTitle: "Engineer", charter: "All of it." });
  owner.send("delegate wait");
  const begun = await until("the buttons", () =>
    owner.shown().find(({ text, buttons }) => text === "On its way." && buttons.length > 0),
  );
  const query = owner.press(begun, /^Cancel/);
  expect((await owner.answered(query)).text).toMatch(/is cancelled/);
  const tasks = await daemon.json<{ items: Task[] }>("GET", "/api/tasks");
  expect(tasks.items[0]).toMatchObject({ status: "cancelled" });
  expect(await owner.answered(owner.press(begun, /^Cancel/))).toMatchObject({
    text: expect.stringMatching(/cancelled already/),
    alert: true,
  });

  owner.send("delegate look");
  const end = await until(
    "the end",
    () =>
      owner
        .shown()
        .filter(({ text, buttons }) => text === "It has ended." && /Evidence of/.test(buttons[0]?.[0]?.text ?? ""))
        .at(-1),
    30_000,
  );
  await until(
    "both ends",
    async () => (await daemon.json<{ items: Task[] }>("GET", "/api/tasks?status=done")).items.length === 1,
  );
  const told = await until("the end of the second", () =>
    owner
      .shown()
      .filter(({ text, buttons }) => text === "It has ended." && buttons.length > 0)
      .at(-1),
  );
  expect(end.silent).toBe(false);
  owner.press(told, /Evidence/);
  await owner.sees(/0 ← echo looked/);
  owner.send("/tasks");
  await owner.sees(/Tasks, newest first\n! t_\w+ done, unproven/);
});

test("a budget that is nearly used up is told in the chat that asked, and one that is used up asks there", async () => {
  const { owner } = await telegraphed(undefined, { config: { budgets: { conversation: { calls: 5 } } } });
  for (let index = 1; index <= 4; index += 1) {
    owner.send(`call ${index}`);
    await owner.sees(new RegExp(`^You said: call ${index}$`));
  }
  await owner.sees(/^Four fifths of the budget of this conversation are used/);
  expect(owner.shown().filter(({ text }) => /Four fifths/.test(text))).toHaveLength(1);
  owner.send("call 5");
  await owner.sees(/^You said: call 5$/);
  owner.send("call 6");
  const question = await until("the question", () => owner.shown().find(({ buttons }) => buttons.length === 3));
  owner.press(question, /Allow/);
  await owner.sees(/^You said: call 6$/);
});
