import { DatabaseSync } from "@photostructure/sqlite";
import { expect, test } from "vitest";
import type { Model } from "../../src/engine/rehearsal/wire.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { callText, obedient } from "../support/orchestrator.ts";
import { characterOf, delegate, project, squadWith } from "../support/squads.ts";
import { until } from "../support/until.ts";

test("after a restart, one message lists what was interrupted and what continues; without interruptions there is none", {
  timeout: 120_000,
}, async () => {
  let isStuck = true;
  const answers: Model = (request) =>
    isStuck && (characterOf(request) || /long story/.test(lastUserText(request))) ? { hang: true } : { say: "Good." };
  const model = await scriptedModel(answers);
  const home = temporaryHome();
  const start = () => startDaemonProcess(home, providerEnvironment(model.url));
  const first = await start();
  await squadWith(first, project(), "web", ["Engineer"]);
  const { id: task } = await delegate(first, "web", { task: "look at the roses" });
  const { id: message } = await first.json<{ id: string }>("POST", "/api/messages", { text: "a long story" });
  await until(
    "both to run",
    () => model.requests.filter((request) => "hang" in (answers(request, 0) as object)).length >= 2,
    60_000,
  );
  await first.kill("SIGKILL");
  isStuck = false;

  const second = await start();
  const told = await second.follow({ lastEventId: "0" });
  const restarts = () => told.of("news.told").filter(({ body }) => String(body.about).startsWith("restart:"));
  await until("the news", () => restarts().length === 1, 60_000);
  const text = String(restarts()[0]!.body.text);
  expect(text).toContain(`message ${message}: a long story`);
  expect(text).toContain(`task ${task}: look at the roses`);
  expect(text).toContain("Needs a decision: nothing");
  expect(restarts()[0]!.body).toMatchObject({ level: "normal", kind: "news" });
  await until(
    "everything to have ended",
    async () => {
      const { queue } = await second.json<{ queue: { depth: number } }>("GET", "/api/status");
      const { status } = await second.json<{ status: string }>("GET", `/api/tasks/${task}`);
      const reported = told
        .of("message.finished")
        .some(({ body }) => (body.source as { channel: string }).channel === "background");
      return reported && queue.depth === 0 && status === "done";
    },
    60_000,
  );
  await second.kill("SIGTERM");
  const third = await start();
  await third.ask({ text: "hello" });
  const later = await third.follow({ lastEventId: "0" });
  await until("the last message", () => later.of("message.finished").some(({ body }) => body.text === "hello"), 60_000);
  expect(later.of("news.told").filter(({ body }) => String(body.about).startsWith("restart:"))).toHaveLength(1);
});

test("a background command that ended with IO is reported once, with the schedules that ask about missed times", {
  timeout: 120_000,
}, async () => {
  const model = await scriptedModel(obedient);
  const home = temporaryHome({ mode: "full" });
  const start = () => startDaemonProcess(home, providerEnvironment(model.url));
  const restarts = async (daemon: Awaited<ReturnType<typeof start>>, count: number) => {
    const told = await daemon.follow({ lastEventId: "0" });
    const news = () => told.of("news.told").filter(({ body }) => String(body.about).startsWith("restart:"));
    return until(`${count} pieces of news`, () => (news().length === count ? news() : undefined), 60_000);
  };
  const first = await start();
  await first.ask({ text: callText("shell", { command: "exec sleep 700", background: true }) });
  await first.ask({ text: callText("shell", { command: "exec sleep 0.01", background: true }) });
  const ended = await first.follow({ lastEventId: "0" });
  await until("the short one to end", () => ended.of("background.finished").length === 1, 60_000);
  for (const catchUp of ["ask", "once"]) await first.json("POST", "/api/schedules", { when: "every 1h", text: "look", catchUp });
  await first.kill("SIGKILL");
  const db = new DatabaseSync(`${home}/io.db`);
  const early = new Date(Date.now() - 300_000).toISOString();
  db.prepare("UPDATE schedules SET next_at = ?, anchor_at = ?").run(early, early);
  db.close();

  const second = await start();
  const [news] = await restarts(second, 1);
  const text = String(news!.body.text);
  expect(text).toMatch(/• background command b_[0-9a-f]+: exec sleep 700$/m);
  expect(text).not.toContain("sleep 0.01");
  expect(text).toContain("Interrupted: 1 piece of work");
  expect(text).toContain("Goes on: nothing; background commands end with IO");
  expect(text).toContain("Needs a decision: 1 schedule asks whether to do now what was missed");
  expect(news!.body.level).toBe("urgent");

  await second.ask({ text: callText("shell", { command: "exec sleep 701", background: true }) });
  await second.kill("SIGTERM");
  const third = await start();
  const [, later] = await restarts(third, 2);
  expect(String(later!.body.text)).toContain("exec sleep 701");
  expect(String(later!.body.text)).not.toContain("sleep 700");
});
