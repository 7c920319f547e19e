import { afterAll, beforeAll, expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import { providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { delegate, ended, squadWith } from "../support/squads.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

let daemon: TestDaemon;
let home: string;
let failing = 0;
const WORDS = "overloaded, says scripted-key-0123456789";

beforeAll(async () => {
  const server = await scriptedModel(
    () => {
      failing -= 1;
      return failing < 0 ? { say: "At last." } : { status: 503, message: WORDS, headers: { "retry-after": "1" } };
    },
    {},
    atTheEnd,
  );
  home = temporaryHome({}, atTheEnd);
  daemon = await startDaemonProcess(home, providerEnvironment(server.url), atTheEnd);
});

const WHY = "the model's provider is failing (HTTP 503: overloaded, says [secret]).";

test("io send tells each try that failed, what went wrong and when the next follows, and not as part of the answer", async () => {
  failing = 2;
  const follower = await daemon.follow({ conversation: "main" });
  const sent = await runIo(["send", "hello"], home);
  expect(sent).toEqual({
    code: 0,
    stdout: "At last.\n",
    stderr: [1, 2].map((attempt) => `! try ${attempt} failed, it is tried again in 1 s: ${WHY}\n`).join(""),
  });
  const told = follower.of("message.retried").map(({ body }) => body);
  expect(told).toEqual([1, 2].map((attempt) => ({ id: told[0]!.id, attempt, why: WHY, waitMs: 1_000 })));
  const message = await daemon.json<Message>("GET", `/api/messages/${String(told[0]!.id)}`);
  expect(message).toMatchObject({ status: "done", reply: "At last." });
});

test("where the first try is answered nothing is told of tries", async () => {
  failing = 0;
  await daemon.ask({ text: "fine", conversation: "other" });
  const follower = await daemon.follow({ conversation: "other" });
  expect((await daemon.ask({ text: "fine again", conversation: "other" })).status).toBe("done");
  expect(follower.of("message.retried")).toEqual([]);
});

test("a task's activity has the tries that failed", async () => {
  await squadWith(daemon, temporaryFolder(), "crew", ["Engineer"]);
  failing = 1;
  const { id } = await delegate(daemon, "crew", { task: "look around" });
  await ended(daemon, id);
  const { items } = await daemon.json<{ items: { summary: string }[] }>("GET", `/api/tasks/${id}/activity`);
  expect(items.map(({ summary }) => summary)).toContain(`try 1 failed, it is tried again in 1 s: ${WHY}`);
});
