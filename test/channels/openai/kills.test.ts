import OpenAI from "openai";
import { expect, test } from "vitest";
import type { Model } from "../../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import { approvalsOf, asked, decide } from "../../support/approvals.ts";
import { providerEnvironment, runIo, startDaemonProcess } from "../../support/daemon.ts";
import { temporaryHome } from "../../support/home.ts";
import { lastUserText, scriptedModel } from "../../support/model.ts";
import { until } from "../../support/until.ts";

const user = (content: string) => ({ role: "user" as const, content });
const newest = async (daemon: { json<T>(method: string, path: string): Promise<T> }, conversation: string) =>
  (await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${conversation}`)).items;

for (const [signal, how] of [
  ["SIGKILL", "killed"],
  ["SIGTERM", "stopped"],
] as const)
  test(`a daemon that is ${how} in the middle of a request goes on with it, and the client's next try is answered by it`, async () => {
    let asks = 0;
    const play: Model = (request) => {
      if (!lastUserText(request).includes("long work")) return { say: "?" };
      asks += 1;
      return asks === 1 ? { hang: true } : { say: "the work is done" };
    };
    const model = await scriptedModel(play);
    const home = temporaryHome({});
    const first = await startDaemonProcess(home, providerEnvironment(model.url));
    const made = await runIo(["token", "create", "client", "--for", "openai", "--json"], home);
    const { token } = JSON.parse(made.stdout) as { token: string };
    const headers = { "X-IO-Conversation": "lasting" };
    const ask = (url: string) =>
      new OpenAI({ apiKey: token, baseURL: `${url}/v1`, maxRetries: 0 }).chat.completions
        .create({ model: "io", messages: [user("long work")] }, { headers })
        .withResponse();
    const lost = expect(ask(first.url)).rejects.toThrow();
    await until("the model to be asked", () => asks === 1);
    await first.kill(signal);
    await lost;

    const second = await startDaemonProcess(home, providerEnvironment(model.url));
    const { data, response } = await ask(second.url);
    expect(data.choices[0]?.message.content).toBe("the work is done");
    const messages = await newest(second, "lasting");
    expect(messages.map(({ id, status }) => [id, status])).toEqual([[response.headers.get("x-io-message"), "done"]]);
    // Once answered, the same text is a new message.
    await ask(second.url);
    expect(await newest(second, "lasting")).toHaveLength(2);
  });

test("a used-up budget holds a request until a person decides, and plain answers are refused meanwhile", async () => {
  const model = await scriptedModel((request) => ({ say: `You said: ${lastUserText(request).split("] ").at(-1)}` }));
  const home = temporaryHome({ budgets: { day: { calls: 1 } } });
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const client = new OpenAI({ apiKey: daemon.token, baseURL: `${daemon.url}/v1` });
  await client.chat.completions.create({ model: "io", messages: [user("one")] });
  const waiting = await client.chat.completions.create({ model: "io", messages: [user("two")], stream: true });
  let text = "";
  let notes = "";
  const read = (async () => {
    for await (const chunk of waiting) {
      const delta = chunk.choices[0]?.delta as { content?: string; reasoning_content?: string } | undefined;
      text += delta?.content ?? "";
      notes += delta?.reasoning_content ?? "";
    }
  })();
  const [question] = await asked(daemon);
  expect(question?.kind).toBe("budget");
  await until("the client to be told", () => notes.includes(question!.id));
  await expect(client.chat.completions.create({ model: "io-light", messages: [user("three")] })).rejects.toMatchObject({
    status: 429,
  });
  expect((await approvalsOf(daemon, "waiting")).map(({ id }) => id)).toEqual([question!.id]);
  await decide(daemon, question!.id, { decision: "allow" });
  await read;
  expect(text).toBe("You said: two");
});

test("tokens are made, listed and revoked by command", async () => {
  const home = temporaryHome({});
  const daemon = await startDaemonProcess(home, { IO_ENGINE: "rehearsal" });
  const made = await runIo(["token", "create", "webui", "--for", "openai,mcp", "--json"], home);
  const { token, ...rest } = JSON.parse(made.stdout) as { token: string };
  expect(rest).toEqual({ name: "webui", for: ["mcp", "openai"] });
  const models = () => fetch(`${daemon.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } });
  expect((await models()).status).toBe(200);
  expect((await runIo(["token", "create", "webui", "--for", "mcp"], home)).stderr).toContain("io token revoke webui");
  expect(await runIo(["token", "create", "x", "--for", "everything"], home)).toMatchObject({ code: 2 });
  expect((await runIo(["token", "list"], home)).stdout).toMatch(/^webui {2}mcp,openai {2}made .*last used/);
  expect((await runIo(["token", "list", "--json"], home)).stdout).not.toContain(token);
  expect((await runIo(["token", "revoke", "webui"], home)).stdout).toContain("webui is revoked");
  expect((await models()).status).toBe(401);
  expect(await runIo(["token", "revoke", "webui"], home)).toMatchObject({ code: 1 });
});
