import { expect, test } from "vitest";
import type { Model } from "../../src/engine/rehearsal/wire.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { characterOf, delegate, project, squadWith } from "../support/squads.ts";
import { until } from "../support/until.ts";

test("after a restart one message says what was interrupted and goes on, and after a quiet one there is none", {
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
