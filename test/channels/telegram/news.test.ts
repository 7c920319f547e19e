import { expect, test } from "vitest";
import type { Model } from "../../../src/engine/rehearsal/wire.ts";
import type { Schedule } from "../../../src/protocol/schedules.ts";
import { isAfterTool, lastUserText } from "../../support/model.ts";
import { digestOf, quietNow, runSchedule } from "../../support/news.ts";
import { callText, inDatabase, obedient } from "../../support/orchestrator.ts";
import { characterOf, ended, project, squadWith } from "../../support/squads.ts";
import { telegraphed } from "../../support/telegram/daemon.ts";
import { until } from "../../support/until.ts";

const THEN = "then";
const ASKS = { approvalRules: [{ tool: "shell", match: "echo *", [THEN]: "ask" }] };

/**
 * Makes the calls that it is told to make. Depending on its text, a scheduled message is reported on, fails, or needs a
 * command.
 */
const model: Model = (request, index) => {
  const said = lastUserText(request);
  if (characterOf(request))
    return isAfterTool(request) ? { say: "Looked." } : { call: [{ tool: "shell", args: { command: "true" } }], delayMs: 200 };
  if (said.includes("[via background]")) return { say: "Report: the task has ended." };
  if (!said.includes("[via schedule]")) return obedient(request, index);
  if (said.includes("break")) return { status: 400, message: "no" };
  if (!said.includes("command")) return { say: `Report: ${/watch \w+/.exec(said)?.[0]}` };
  return isAfterTool(request) ? { say: "Report: commanded" } : { call: [{ tool: "shell", args: { command: "echo on" } }] };
};

async function scheduled(conversation: Awaited<ReturnType<typeof telegraphed>>, text: string): Promise<string> {
  const { owner, daemon } = conversation;
  owner.send(callText("schedule_add", { when: "daily 03:00", text }));
  const { items } = await until("the schedule", async () => {
    const list = await daemon.json<{ items: Schedule[] }>("GET", "/api/schedules");
    return list.items.some((each) => each.text === text) && list;
  });
  return items.find((each) => each.text === text)!.id;
}

test("in quiet hours an answer comes, a schedule's reply waits for the digest, and a question or a failure comes at once", async () => {
  const chat = await telegraphed(model, { config: { ...ASKS, news: { quietHours: quietNow() } } });
  const { owner, daemon } = chat;
  const { of } = await daemon.follow();
  const watch = await scheduled(chat, "watch builds");
  await owner.sees(/I read: Made/);
  expect((await runSchedule(daemon, watch)).state).toBe("done");

  const broken = await scheduled(chat, "break it");
  expect((await runSchedule(daemon, broken)).state).toBe("failed");
  await owner.sees(/^Sorry, I encountered an error/, 60_000);

  const command = await scheduled(chat, "command it");
  const begun = runSchedule(daemon, command);
  const question = await owner.sees(/wants to use shell/, 60_000);
  owner.press(question, /Allow/);
  expect((await begun).state).toBe("done");

  expect(await digestOf(daemon)).toMatchObject({
    heldCount: 2,
    held: [{ text: "Report: watch builds" }, { text: "Report: commanded" }],
  });
  const levels = () => of("news.told").map(({ body: { level, kind } }) => [level, kind]);
  expect(levels()).toEqual([
    ["urgent", "reply"],
    ["urgent", "approval"],
  ]);
  expect(owner.shown().filter(({ text }) => text.startsWith("Report"))).toHaveLength(0);

  await daemon.json("PATCH", "/api/config", { news: {} });
  const loud = await scheduled(chat, "watch tests");
  await runSchedule(daemon, loud);
  await owner.sees(/^Report: watch tests$/);
  expect(owner.shown().filter(({ text }) => text.startsWith("Report"))).toHaveLength(1);
  await until("its event", () => levels().length === 3);
  expect(levels()[2]).toEqual(["normal", "reply"]);
});

test("a conversation and a squad can be set to urgent news or none, whatever the hour", async () => {
  const chat = await telegraphed(model);
  const { owner, daemon } = chat;
  await daemon.json("PATCH", "/api/conversations/main", { news: "urgent" });
  const [watch, broken] = [await scheduled(chat, "watch builds"), await scheduled(chat, "break it")];
  await runSchedule(daemon, watch);
  await runSchedule(daemon, broken);
  await owner.sees(/^Sorry/, 60_000);
  expect((await digestOf(daemon)).held.map(({ text }) => text)).toEqual(["Report: watch builds"]);

  await daemon.json("PATCH", "/api/conversations/main", { news: null });
  await squadWith(daemon, project(), "web", ["Backend Engineer"]);
  await daemon.json("PATCH", "/api/squads/web", { safety: { news: "none" } });
  owner.send(callText("squad_delegate", { slug: "web", task: "look at it" }));
  await until("what the squad said to be held back", async () => (await digestOf(daemon)).heldCount === 2, 60_000);
  expect(owner.shown().filter(({ text, silent }) => text.includes("Report") || (silent && text.includes("(web)")))).toEqual([]);
});

test("a question is repeated once before it expires and never more, and both lose their buttons", async () => {
  const { owner, daemon } = await telegraphed(
    (request) => (isAfterTool(request) ? { say: "Not allowed." } : { call: [{ tool: "shell", args: { command: "echo here" } }] }),
    { config: { ...ASKS, approvalExpiresMs: 9_000 } },
  );
  const { of } = await daemon.follow();
  owner.send("run it");
  await owner.sees(/Still waits for you/, 60_000);
  await owner.sees(/Not allowed/, 60_000);
  const questions = owner.shown().filter(({ text }) => /wants to use shell/.test(text));
  expect(questions).toHaveLength(2);
  await until("the buttons to go", () => questions.every(({ buttons }) => buttons.length === 0));
  await until("the events", () => of("news.told").length === 2);
  expect(of("news.told").map(({ body }) => body.kind)).toEqual(["approval", "reminder"]);
});

test("what a task is at is one silent message that is edited, and its report is another that makes a sound", async () => {
  const { owner, daemon } = await telegraphed(model);
  await squadWith(daemon, project(), "web", ["Backend Engineer"]);
  owner.send(callText("squad_delegate", { slug: "web", task: "look at it" }));
  const { items } = await until("the task", async () => {
    const list = await daemon.json<{ items: { id: string }[] }>("GET", "/api/tasks");
    return list.items.length > 0 && list;
  });
  const { id } = items[0]!;
  await ended(daemon, id, 60_000);
  await owner.sees(/Report: the task has ended/, 60_000);
  const progress = await owner.sees(new RegExp(`${id} ! done, unproven`), 60_000);
  expect(progress).toMatchObject({ silent: true });
  expect(progress.edits).toBeGreaterThan(0);
  expect(owner.shown().filter(({ text }) => text.includes("(web)"))).toEqual([progress]);
  expect(owner.shown().filter(({ silent, text }) => !silent && text.includes("Report"))).toHaveLength(1);
});

test("over a kill what a task is at stays the one message that it was", async () => {
  let isStuck = true;
  const { owner, daemon, home, start } = await telegraphed((request, index) =>
    isStuck && characterOf(request) && isAfterTool(request) ? { hang: true } : model(request, index),
  );
  await squadWith(daemon, project(), "web", ["Backend Engineer"]);
  owner.send(callText("squad_delegate", { slug: "web", task: "look at it" }));
  await owner.sees(/^⚙ .*\(web\)/, 60_000);
  // Before that, nobody could know whether it was sent.
  const confirmed = "SELECT 1 FROM telegram_sends WHERE key LIKE 'progress:%' AND message_id IS NOT NULL";
  await until("its sending to be written down", () => inDatabase(home, (db) => db.prepare(confirmed).get() !== undefined));
  await daemon.kill("SIGKILL");
  isStuck = false;
  await start();
  const progress = await owner.sees(/ ! done, unproven/, 60_000);
  await owner.sees(/Report: the task has ended/, 60_000);
  expect(progress).toMatchObject({ silent: true });
  expect(owner.shown().filter(({ text }) => text.includes("(web)"))).toEqual([progress]);
});

test("a schedule that failed three times in a row says once that it has paused itself", async () => {
  const chat = await telegraphed(model);
  const id = await scheduled(chat, "break it");
  for (let time = 0; time < 3; time += 1) await runSchedule(chat.daemon, id);
  const paused = await chat.owner.sees(/is paused: it failed 3 times in a row/, 60_000);
  expect(paused).toMatchObject({ silent: false, text: expect.stringContaining(`io schedule resume ${id}`) });
  expect(chat.owner.shown().filter(({ text }) => text.includes("is paused"))).toHaveLength(1);
});
