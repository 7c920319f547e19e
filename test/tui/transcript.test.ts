import { expect, test } from "vitest";
import type { Event } from "../../src/protocol/events.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { lineText } from "../../src/tui/text/style.ts";
import { noteBlock } from "../../src/tui/transcript/blocks.ts";
import { Transcript } from "../../src/tui/transcript/transcript.ts";

const message = (more: Partial<Message>): Message => ({
  id: "m",
  conversation: "main",
  source: { channel: "tui" },
  text: "hello",
  attachments: [],
  steered: [],
  status: "done",
  reply: null,
  partial: false,
  error: null,
  route: { answered: "directly", tools: [], tasks: [], runs: [] },
  attempts: 1,
  createdAt: "2026-01-01T00:00:00Z",
  startedAt: null,
  finishedAt: "2026-01-01T00:00:01Z",
  usage: { calls: 1, inputTokens: 1, outputTokens: 1, cacheReadTokens: 0 },
  ...more,
});

function open() {
  let clock = 0;
  const transcript = new Transcript({ links: false, now: () => clock });
  const printed: string[] = [];
  return {
    transcript,
    printed,
    wait: (ms: number) => {
      clock += ms;
    },
    hear(type: string, data: object) {
      transcript.hear({ id: 1, type, data } as Event);
      printed.push(...transcript.take(80).map(lineText));
    },
    live: () => transcript.live(80).map(lineText),
  };
}

const begin = ({ hear }: ReturnType<typeof open>) => {
  hear("message.queued", { id: "m", conversation: "main", source: { channel: "tui" }, text: "hello" });
  hear("message.started", { id: "m", conversation: "main" });
};

test("a remark waits until it tears no paragraph apart; what a command answers does not wait", () => {
  const chat = open();
  begin(chat);
  chat.hear("message.delta", { id: "m", text: "Half of a sen" });
  chat.transcript.calmly(noteBlock("from afar"));
  chat.hear("message.steered", { id: "m", text: "be brief" });
  expect(chat.printed).toEqual(["› hello"]);
  expect(chat.live()).toEqual(["", "Half of a sen"]);
  chat.transcript.print(noteBlock("answered at once"));
  chat.hear("message.delta", { id: "m", text: "tence.\n\n" });
  expect(chat.printed).toEqual([
    "› hello",
    "",
    "· answered at once",
    "",
    "Half of a sentence.",
    ...["", "· from afar", "", "↳ be brief"],
  ]);
  chat.hear("message.delta", { id: "m", text: "More." });
  chat.hear("message.finished", message({ reply: "Half of a sentence.\n\nMore." }));
  expect(chat.printed.slice(9)).toEqual(["", "More."]);
});

test("a tool's line is live while it works and until something follows; its result unfolds in place, and folds again", () => {
  const chat = open();
  begin(chat);
  chat.hear("message.tool", { id: "m", tool: "shell", callId: "c", state: "started" });
  chat.hear("message.tool", { id: "m", tool: "shell", callId: "c", state: "running", args: "npm test" });
  chat.wait(1_200);
  expect(chat.live()).toEqual(["", expect.stringMatching(/^ {2}\S \$ npm test {2}1\.2 s$/)]);
  chat.hear("message.tool", { id: "m", tool: "shell", callId: "c", state: "done", exitCode: 0 });
  const call = chat.transcript.lastCall!;
  const found = { tool: "shell", args: "{}", state: "done", result: "one\ntwo\u001b[2J", durationMs: 5 };
  chat.transcript.unfold(call, found);
  expect(chat.live()).toEqual(["", "  ✓ $ npm test  exit 0  1.2 s", "    one", "    two�[2J"]);
  chat.transcript.unfold(call, found);
  expect(chat.live()).toHaveLength(2);
  chat.hear("message.delta", { id: "m", text: "Good.\n" });
  expect(chat.printed).toEqual(["› hello", "", "  ✓ $ npm test  exit 0  1.2 s", "", "Good."]);
  chat.transcript.unfold(call, found);
  chat.hear("message.finished", message({ reply: "Good." }));
  expect(chat.printed.slice(5)).toEqual(["", "  ✓ $ npm test  exit 0  1.2 s", "    one", "    two�[2J"]);
});

test("the last lines of a command are seen while it runs; they stay if it fails or is cancelled, and go if it went well", () => {
  const chat = open();
  begin(chat);
  const tool = (callId: string, more: object) =>
    chat.hear("message.tool", { id: "m", tool: "shell", callId, state: "running", ...more });
  for (const [callId, args] of [
    ["good", "true"],
    ["bad", "false"],
    ["cut", "sleep 9"],
  ] as const) {
    tool(callId, { state: "started" });
    tool(callId, { args });
    tool(callId, { output: "1\n2\n3\n4\n" });
    tool(callId, { output: `5\r50 %\rend of ${args}\u001b[2J\n` });
  }
  expect(chat.live().filter((line) => /^ {4}\S/.test(line))).toHaveLength(15);
  expect(chat.live()).toContain("    end of true�[2J");
  tool("good", { state: "done", exitCode: 0 });
  tool("bad", { state: "done", exitCode: 7 });
  chat.hear("message.finished", message({ status: "cancelled", reply: null }));
  expect(chat.printed).toEqual([
    "› hello",
    "",
    "  ✓ $ true  exit 0  0.0 s",
    "  ✗ $ false  exit 7  0.0 s",
    ...["    3", "    4", "    5", "    50 %", "    end of false�[2J"],
    "  ! $ sleep 9  unknown  0.0 s",
    ...["    3", "    4", "    5", "    50 %", "    end of sleep 9�[2J"],
    "",
    "· (cancelled)",
  ]);
});

test("nothing is told twice: not a turn that was recalled, not an answer that was streamed", () => {
  const chat = open();
  chat.transcript.recall(message({ id: "old", text: "before", reply: "Then." }));
  chat.hear("message.finished", message({ id: "old", text: "before", reply: "Then." }));
  begin(chat);
  begin(chat);
  chat.hear("message.delta", { id: "m", text: "Now." });
  chat.hear("message.finished", message({ reply: "Now.", status: "failed", error: { code: "x", message: "it broke" } }));
  chat.hear("message.finished", message({ reply: "Now." }));
  expect(chat.printed.filter(Boolean)).toEqual([
    "› before",
    "Then.",
    "› hello",
    "Now.",
    "Sorry, I encountered an error: it broke",
  ]);
});
