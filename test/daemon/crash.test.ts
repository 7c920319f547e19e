import { expect, test } from "vitest";
import { isAlive } from "../../src/lib/alive.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { soon } from "../support/soon.ts";
import { until } from "../support/until.ts";

const finished = (daemon: TestDaemon, id: string) =>
  until(`message ${id} to be finished`, async () => {
    const message = await daemon.json<Message>("GET", `/api/messages/${id}`);
    return message.finishedAt === null ? undefined : message;
  });

/** How often the user's text occurs in the model's last request. */
const timesAsked = (request: { messages: { role: string; content?: unknown }[] }, words: string) =>
  request.messages.filter(({ role, content }) => role === "user" && JSON.stringify(content).includes(words)).length;

test("a message is answered once although the runtime is killed in the middle of it", async () => {
  const model = await scriptedModel((_request, index) => (index === 0 ? { stall: "half a sen" } : { say: "a whole sentence" }));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const follower = await daemon.follow();
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text: "speak to me" });
  await until("a delta", () => follower.of("message.delta").length > 0);
  const runtime = daemon.runtimePid();
  const killedAt = performance.now();
  process.kill(runtime, "SIGKILL");
  await until("the news of the restart", () => follower.of("engine.changed").some(({ body }) => body.state === "restarting"));
  expect(performance.now() - killedAt).toBeLessThan(soon(1_000));

  const message = await finished(daemon, id);
  expect(message).toMatchObject({ status: "done", reply: "a whole sentence" });
  expect(timesAsked(model.requests.at(-1)!, "speak to me")).toBe(1);
  expect(follower.of("message.finished")).toHaveLength(1);
  expect(daemon.runtimePid()).not.toBe(runtime);
  expect((await daemon.ask({ text: "next" })).status).toBe("done");
});

test("a message is answered once although the daemon is killed in the middle of it", async () => {
  const model = await scriptedModel((request, index) =>
    index === 1 ? { stall: "half" } : { say: `answer to ${/\] (\w+)$/.exec(lastUserText(request))?.[1]}` },
  );
  const home = temporaryHome();
  const first = await startDaemonProcess(home, providerEnvironment(model.url));
  expect((await first.ask({ text: "before" })).reply).toBe("answer to before");
  const follower = await first.follow();
  const { id } = await first.json<{ id: string }>("POST", "/api/messages", { text: "during" });
  const { id: waiting } = await first.json<{ id: string }>("POST", "/api/messages", { text: "after" });
  await until("a delta", () => follower.of("message.delta").length > 0);
  const runtime = first.runtimePid();
  await first.kill("SIGKILL");

  const second = await startDaemonProcess(home, providerEnvironment(model.url));
  expect(isAlive(runtime)).toBe(false);
  expect(await finished(second, id)).toMatchObject({ status: "done", reply: "answer to during", attempts: 2 });
  expect(await finished(second, waiting)).toMatchObject({ status: "done", reply: "answer to after", attempts: 1 });
  const last = model.requests.at(-1)!;
  expect(["before", "during", "after"].map((word) => timesAsked(last, `] ${word}`))).toEqual([1, 1, 1]);
});

test("a clean stop in the middle of a message loses nothing", async () => {
  const model = await scriptedModel((_request, index) => (index === 0 ? { stall: "half" } : { say: "whole" }));
  const home = temporaryHome();
  const first = await startDaemonProcess(home, providerEnvironment(model.url));
  const { id } = await first.json<{ id: string }>("POST", "/api/messages", { text: "hello" });
  await until("the model to be asked", () => model.requests.length === 1);
  await first.kill("SIGTERM");
  const second = await startDaemonProcess(home, providerEnvironment(model.url));
  expect(await finished(second, id)).toMatchObject({ status: "done", reply: "whole" });
});
