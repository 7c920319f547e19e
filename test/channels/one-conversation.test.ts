import { methods } from "@agentclientprotocol/sdk";
import OpenAI from "openai";
import { expect, test } from "vitest";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { startEditor } from "../support/acp.ts";
import { runIo } from "../support/daemon.ts";
import { projectOf } from "../support/project.ts";
import { telegraphed } from "../support/telegram/daemon.ts";
import { until } from "../support/until.ts";

test("a conversation goes from the terminal to an editor, to Open WebUI, to the phone and back, with one history", async () => {
  const { daemon, home, model, owner } = await telegraphed(undefined, { config: { mode: "auto" } });
  const name = "the-trip";
  const cwd = projectOf({ "package.json": "{}" });
  await daemon.json("PATCH", `/api/conversations/${name}`, { folder: cwd });
  const say = async (words: string) => (await runIo(["send", words, "--conversation", name], home)).stdout;

  expect(await say("one, in the terminal")).toContain("You said: one, in the terminal");

  const editor = await startEditor(home);
  await editor.agent.request(methods.agent.session.load, { sessionId: name, cwd, mcpServers: [] });
  expect(editor.said(name)).toBe("You said: one, in the terminal");
  const prompt = [{ type: "text" as const, text: "two, in the editor" }];
  await editor.agent.request(methods.agent.session.prompt, { sessionId: name, prompt });

  // Open WebUI sends its own history, and the headers that the user has configured for the connection.
  const webui = new OpenAI({
    ...{ apiKey: daemon.token, baseURL: `${daemon.url}/v1` },
    defaultHeaders: { "X-IO-Conversation": name, "X-OpenWebUI-Chat-Id": "5a1c" },
  });
  const messages = [{ role: "user" as const, content: "three, in Open WebUI" }];
  const { choices } = await webui.chat.completions.create({ model: "io", messages });
  expect(choices[0]?.message.content).toBe("You said: three, in Open WebUI");

  owner.send(`/new ${name}`);
  await owner.sees(new RegExp(name));
  owner.send("four, on the phone");
  await owner.sees(/^You said: four, on the phone$/);

  expect(await say("five, in the terminal again")).toContain("You said: five");
  const words = ["one, in the terminal", "two, in the editor", "three, in Open WebUI", "four, on the phone", "five, in the term"];
  // The model was shown all messages in order, each once.
  const shown = model.requests
    .at(-1)!
    .messages.filter(({ role }) => role === "user")
    .map(textOf)
    .join("\n");
  const places = words.map((each) => shown.indexOf(each));
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(places[0]).toBeGreaterThan(-1);
  for (const each of words) expect(shown.split(each)).toHaveLength(2);

  const { items } = await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${name}`);
  expect(items.map(({ source, status }) => [source.channel, status]).reverse()).toEqual([
    ["api", "done"],
    ["acp", "done"],
    ["openai", "done"],
    ["telegram", "done"],
    ["api", "done"],
  ]);
  // The editor with the conversation open was told everything that was said elsewhere, in that order.
  await until("word of the fifth", () => editor.said(name).includes("You said: five"));
  const told = editor.said(name, "user_message_chunk");
  expect(["one,", "three,", "four,", "five,"].map((each) => told.split(each).length)).toEqual([2, 2, 2, 2]);
  expect(told).not.toContain("two,");

  // A conversation that began in Open WebUI can be continued by name, and Open WebUI finds it again by its chat id.
  const chat = new OpenAI({
    ...{ apiKey: daemon.token, baseURL: `${daemon.url}/v1` },
    defaultHeaders: { "X-OpenWebUI-Chat-Id": "77" },
  });
  await chat.chat.completions.create({ model: "io", messages: [{ role: "user", content: "begun in the browser" }] });
  await runIo(["send", "gone on in the terminal", "--conversation", "webui-77"], home);
  const again = await chat.chat.completions
    .create({ model: "io", messages: [{ role: "user", content: "and back" }] })
    .withResponse();
  expect(again.response.headers.get("x-io-conversation")).toBe("webui-77");
  const last = model.requests.at(-1)!.messages.map(textOf).join("\n");
  expect(last.indexOf("begun in the browser")).toBeGreaterThan(-1);
  expect(last.indexOf("gone on in the terminal")).toBeGreaterThan(last.indexOf("begun in the browser"));
});
