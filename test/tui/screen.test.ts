import { expect, test } from "vitest";
import { activityLines } from "../../src/tui/screen/activity.ts";
import { createAttention } from "../../src/tui/screen/attention.ts";
import { layOutLive } from "../../src/tui/screen/layout.ts";
import { createScreen, type Row } from "../../src/tui/screen/screen.ts";
import { statusLine } from "../../src/tui/screen/status-line.ts";
import { lineText } from "../../src/tui/text/style.ts";
import { clip } from "../../src/tui/text/wrap.ts";
import { differenceBlock } from "../../src/tui/transcript/blocks.ts";
import { forbiddenIn, reprinted } from "../support/terminal.ts";

const rows = (...texts: string[]): Row[] => texts.map((text) => ({ text, width: text.length }));

test("only what has changed is written, and what is finished never again", () => {
  let written = "";
  const screen = createScreen({
    write: (bytes) => {
      written += bytes;
    },
    columns: () => 80,
    rows: () => 24,
    reflows: true,
  });
  const caret = { row: 1, column: 2 };
  screen.draw({ above: ["finished"], live: rows("under way", "> ", "status"), caret });
  written = "";
  screen.draw({ above: [], live: rows("under way now", "> ", "status"), caret });
  expect(written).toContain(" now");
  expect(written).not.toMatch(/finished|under|status/);
  written = "";
  screen.draw({ above: [], live: rows("under way now", "> ", "status"), caret });
  expect(written).toBe("");
});

test("what reads the bytes finds a finished line that is written again, even one that is wiped away at once", () => {
  const lines = ["one", "two", "three", "four", "five"];
  const bytes = lines.map((line) => `\u001b[1m${line[0]}\u001b[0m${line.slice(1)}\r\n`).join("");
  expect(reprinted(bytes, lines)).toEqual([]);
  expect(reprinted(`${bytes}two\r\u001b[K`, lines)).toEqual(["two"]);
  expect(forbiddenIn(`${bytes}\u001b[?1002h\u001b[3J`)).toHaveLength(2);
});

test.each([
  [true, 2, 2],
  [true, 32, 3],
  [false, 32, 1],
])(
  "rows that a narrower terminal has broken (%s), with the caret in column %i, are gone up over, all of them",
  (reflows, at, up) => {
    let columns = 40;
    let written = "";
    const write = (bytes: string) => {
      written += bytes;
    };
    const screen = createScreen({ write, columns: () => columns, rows: () => 24, reflows });
    screen.draw({ above: [], live: rows("x".repeat(35), `> ${"y".repeat(33)}`, "status"), caret: { row: 1, column: at } });
    columns = 20;
    written = "";
    screen.draw({ above: [], live: rows("x".repeat(20), "> ", "status"), caret: { row: 1, column: 2 } });
    expect(written).toContain(`\r\u001b[${up}A\u001b[K`);
  },
);

test("a live region of a single row is taken away whole, also at the bottom of the screen", () => {
  let written = "";
  const write = (bytes: string) => {
    written += bytes;
  };
  const screen = createScreen({ write, columns: () => 80, rows: () => 24, reflows: true });
  screen.draw({ above: [], live: rows("working"), caret: { row: 0, column: 0 } });
  written = "";
  screen.clear();
  expect(written).toBe("\r\u001b[K");
});

test("nobody is called while the terminal has the focus; the title that was there comes back", () => {
  const written: string[] = [];
  const attention = createAttention((bytes) => written.push(bytes));
  attention.call("IO has answered");
  expect(written).toEqual([]);
  attention.focus(false);
  attention.call("IO\u001b]2;evil\u0007 asks; now");
  expect(written).toHaveLength(1);
  expect(written[0]!.endsWith("\u0007\u0007")).toBe(true);
  expect(written[0]).not.toContain("\u001b]2;evil");
  attention.focus(true);
  expect(written[1]).toBe("\u001b[23;2t");
});

test("a narrow status line leaves out what matters least", () => {
  const facts = {
    connection: "reconnecting" as const,
    engine: { kind: "provider", model: "m-1", state: "ready" },
    conversation: "other",
    queue: 2,
    tasks: 1,
    runs: 3,
    approvals: 0,
    tokens: 12_345,
  };
  expect(lineText(statusLine(facts, 120))).toBe("provider m-1 · reconnecting · other · queue 2 · 1 task · 3 runs · 12.3k tokens");
  expect(lineText(statusLine(facts, 40))).toBe("provider m-1 · reconnecting · queue 2");
  expect(lineText(statusLine({ ...facts, mode: "auto" }, 40))).toBe("provider m-1 · reconnecting · auto");
});

test("there is a sign of life at once, the seconds of silence from the fifth on, and of a question that the turn waits", () => {
  const lines = (now: number, heardAt: number) =>
    activityLines({ turn: { id: "m", startedAt: 0, heardAt }, waiting: [], sending: [], now, todo: [] }).map(lineText);
  expect(activityLines({ turn: undefined, waiting: [], sending: ["hello\u001b[2J"], now: 0, todo: [] }).map(lineText)).toEqual([
    "› hello�[2J",
    expect.stringContaining("sending"),
  ]);
  expect(lines(0, 0)).toEqual([expect.stringMatching(/working 0 s · Esc stops/)]);
  expect(lines(4_900, 0)[0]).not.toContain("silent");
  expect(lines(7_300, 0)[0]).toContain("working 7 s · silent for 7 s");
  const turn = { id: "m", startedAt: 0, heardAt: 0 };
  const asked = (asking: string) =>
    activityLines({ turn, waiting: [], sending: [], now: 7_300, todo: [], asking }).map(lineText)[0];
  expect([asked("m"), asked("t")]).toEqual([
    expect.stringContaining("working 7 s · waits for you · Esc"),
    expect.stringContaining("silent for 7 s"),
  ]);
  expect(lines(61_000, 60_000)[0]).toMatch(/working 1 min 1 s · Esc/);
});

test("what is not finished is never higher than the screen: its last lines stay, with the editor and the status", () => {
  const many = (word: string, count: number) => Array.from({ length: count }, (_, at) => [{ text: `${word} ${at + 1}` }]);
  const looks = { colour: false, links: false };
  for (const height of [6, 10, 24]) {
    const parts = { underWay: many("row", 500), question: many("asked", 3), activity: many("step", 2), hint: [] };
    const { live, caret } = layOutLive(
      { ...parts, draft: { text: "typed", caret: 5, cut: "" }, status: [{ text: "status" }] },
      { width: 80, height, looks },
    );
    expect(live.length).toBeLessThan(height);
    expect(live.at(-1)!.text).toContain("status");
    expect(live[caret.row]!.text).toContain("typed");
    if (height === 24) expect(live.map(({ text }) => text).join("\n")).toMatch(/row 500\n\nasked 1[\s\S]*step 2/);
  }
});

test("a message of a megabyte that is being sent costs a frame no more than what is seen of it", () => {
  const text = "é ".repeat(500_000);
  const began = process.cpuUsage();
  const activity = activityLines({ turn: undefined, waiting: [], sending: [text], now: 0, todo: [] });
  const draft = { text: "", caret: 0, cut: "" };
  const parts = { underWay: [], question: [], activity, draft, hint: [], status: [] };
  const { live } = layOutLive(parts, { width: 40, height: 20, looks: { colour: false, links: false } });
  const { user, system } = process.cpuUsage(began);
  expect(live[1]).toMatchObject({ text: `› ${"é ".repeat(18)}é…`, width: 40 });
  expect((user + system) / 1_000).toBeLessThan(150);
});

test("a line is clipped to the columns that its letters take", () => {
  const clipped = (text: string, width: number) => lineText(clip([{ text: "› " }, { text }], width));
  expect(clipped("abcdef", 8)).toBe("› abcdef");
  expect(clipped("abcdefg", 8)).toBe("› abcde…");
  expect(clipped("日本語日", 8)).toBe("› 日本…");
  expect(clipped("日本語", 8)).toBe("› 日本語");
  expect(clipped("e\u0301".repeat(7), 8)).toBe(`› ${"e\u0301".repeat(5)}…`);
});

test("a difference stands as it is, and a sentence about it is broken between words", () => {
  const line = ` ${"context ".repeat(10)}`;
  const lines = differenceBlock(`+${"new ".repeat(12)}\n${line}\nFiles that .gitignore names are not kept.`)(30).map(lineText);
  expect(lines).toEqual([`+${"new ".repeat(12)}`, line, "Files that .gitignore names", "are not kept."]);
});
