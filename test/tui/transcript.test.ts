import { expect, test } from "vitest";
import type { Event } from "../../src/protocol/events.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { lineText } from "../../src/tui/text/style.ts";
import { graphemes } from "../../src/tui/text/width.ts";
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

test("a huge pasted message is shown by its beginning and its end, at once", () => {
  const rows = Array.from({ length: 20_000 }, (_, row) => `row ${row} – ${"x".repeat(60)}`);
  const { chat, time } = shownMessage(`${rows.join("\n")}\nWhat is wrong here?`);
  expect(chat.printed).toHaveLength(31);
  expect(chat.printed[0]).toContain("› row 0 ");
  expect(chat.printed[20]).toBe("  … (19971 more lines)");
  expect(chat.printed.slice(-2)[0]).toContain("row 19999");
  expect(chat.printed.at(-1)).toBe("  What is wrong here?");
  expect(time).toBeLessThan(500);
  const long = shownMessage("é".repeat(100_000));
  expect(long.chat.printed.join("")).toContain("… (97000 more characters)");
});

test("a long text is split into the same characters as a short one, in time that grows with its length", () => {
  const whole = (text: string) => Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
  // In one of these texts each piece ends inside an emoji, a flag, or a letter with its accents.
  for (let shift = 0; shift < 12; shift += 1) {
    const text = "x".repeat(250 + shift) + "👩‍👩‍👧‍👦🇩🇪é\r\n한".repeat(12);
    expect(graphemes(text)).toEqual(whole(text));
  }
  const accents = `a${"\u0301".repeat(2_000)}b`;
  expect(graphemes(accents).join("")).toBe(accents);
  const started = process.cpuUsage();
  expect(graphemes("é word ".repeat(30_000))).toHaveLength(210_000);
  expect(process.cpuUsage(started).user / 1_000).toBeLessThan(3_000);
});

function shownMessage(text: string) {
  const chat = open();
  const started = process.cpuUsage();
  chat.hear("message.queued", { id: "m", conversation: "main", source: { channel: "tui" }, text });
  chat.hear("message.started", { id: "m", conversation: "main" });
  return { chat, time: process.cpuUsage(started).user / 1_000 };
}
