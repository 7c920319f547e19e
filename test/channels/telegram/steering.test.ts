import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type ChatRequest, type Model, textOf } from "../../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import { temporaryFolder } from "../../support/home.ts";
import { isAfterTool } from "../../support/model.ts";
import { telegraphed } from "../../support/telegram/daemon.ts";
import { until } from "../../support/until.ts";

const saidTo = (request: ChatRequest) => request.messages.filter(({ role }) => role === "user").map((message) => textOf(message));

test("a reply to what is being answered, or to its answer, is said into the turn; anything else comes next", async () => {
  const gate = join(temporaryFolder(), "gate");
  const model: Model = (request) => {
    const said = saidTo(request);
    if (said.at(-1)!.includes("afterwards")) return { say: "Then that." };
    if (isAfterTool(request) || said.at(-1)!.includes("gap")) return { say: `Heard ${said.length} times.` };
    return { call: [{ tool: "shell", args: { command: `until [ -e '${gate}' ]; do sleep 0.05; done` } }] };
  };
  const { api, owner, daemon, model: served } = await telegraphed(model);
  const first = owner.send("walk");
  const tools = await owner.sees(/^⚙ shell/);
  const replyTo = (message_id: number) => ({
    reply_to_message: { message_id, chat: { id: owner.id, type: "private" }, date: 1, text: "x" },
  });
  const one = owner.send("mind the gap", { fields: replyTo((first.message as { message_id: number }).message_id) });
  const two = owner.send("and the other gap", { fields: replyTo(tools.message_id) });
  const three = owner.send("this comes afterwards", { fields: replyTo(99_000) });
  const idOf = (update: typeof one) => (update.message as { message_id: number }).message_id;
  await until("both to be heard", () => api.chats.reactions.has(idOf(one)) && api.chats.reactions.has(idOf(two)));
  // An update that Telegram delivers twice is used only once.
  api.updates.again(one);
  await until("it to be told again", () => api.updates.waiting() === 0);
  writeFileSync(gate, "");
  await owner.sees(/^Then that\.$/);
  const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages");
  expect(items.map(({ text, steered }) => [text, steered.map((each) => each.text)])).toEqual([
    ['(About: "x")\nthis comes afterwards', []],
    ["walk", ["mind the gap", "and the other gap"]],
  ]);
  expect(api.chats.reactions.has(idOf(three))).toBe(false);
  expect(saidTo(served.requests.at(-1)!).filter((text) => text.includes("mind the gap"))).toEqual([
    "[via telegram] mind the gap",
  ]);
});
