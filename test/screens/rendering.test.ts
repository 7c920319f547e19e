import { describe, expect, test } from "vitest";
import { count, openChat } from "../support/chat.ts";
import { forbiddenIn, reprinted, uncoloured } from "../support/terminal.ts";
import { until } from "../support/until.ts";

const SIZES = [
  [60, 20],
  [120, 40],
  [200, 60],
] as const;

const LINES = Array.from({ length: 150 }, (_, index) => `- item **${index + 1}** of the long answer, told in some words`);
const LONG = [
  "# The answer",
  "",
  ...LINES,
  "",
  "```ts",
  ...Array.from({ length: 40 }, (_, at) => `const v${at} = ${at};`),
  "```",
  "",
  "That is **all**.",
];
const PIECES = LONG.join("\n").split(/(?<=\s)/);

/** How an item looks once it is finished. */
const item = (index: number) => `• item ${index} of the long answer`;

const FINISHED = [...LINES.map((_, index) => item(index + 1)), ...Array.from({ length: 40 }, (_, at) => `const v${at} = ${at};`)];

describe.each(SIZES)("at %ix%i", (columns, rows) => {
  const size = { columns, rows };

  test("the first answer stands below its question, without marks, and the cursor waits at the prompt", async () => {
    const { terminal } = await openChat(() => ({ say: "Good **day** to `you`." }), size);
    await terminal.enter("hello");
    await terminal.sees(/› hello\n\nGood day to you\.\n\n›\n[^\n]*provider scripted · connected[^\n]*[1-9]\d* tokens/);
    await until("the cursor at the prompt", async () => {
      const [screen, { x, y }] = [await terminal.screen(), await terminal.cursor()];
      return screen.split("\n")[y] === "›" && x === 2;
    });
    expect(forbiddenIn(terminal.bytes())).toEqual([]);
  });

  test("an answer longer than the screen can be scrolled back to, complete and once, over resizes up and down while it comes", {
    timeout: 120_000,
  }, async () => {
    const { terminal } = await openChat(() => ({ say: PIECES, gapMs: 4 }), size);
    await terminal.enter("tell me everything");
    await terminal.sees("item 10 of", 30_000);
    await terminal.resize(columns - 15, rows);
    await terminal.sees("item 40 of", 30_000);
    await terminal.resize(columns + 20, rows - 6);
    await terminal.sees("item 80 of", 30_000);
    await terminal.resize(columns - 8, rows + 10);
    await terminal.sees("item 120 of", 30_000);
    await terminal.resize(columns, rows);
    await terminal.sees("That is all.", 60_000);
    await terminal.resize(columns - 10, rows - 2);
    await terminal.resize(columns, rows);
    const all = await terminal.scrollback();
    expect(count(all, "The answer")).toBe(1);
    for (let index = 1; index <= LINES.length; index += 1) expect([index, count(all, item(index))]).toEqual([index, 1]);
    for (let at = 0; at < 40; at += 1) expect([at, count(all, `const v${at} = ${at};`)]).toEqual([at, 1]);
    expect(all).not.toMatch(/\*\*|```/);
    expect(count(all, "› tell me everything")).toBe(1);
    // Checked by bytes: finished lines are never written again, neither on a resize nor while more text arrives.
    await until("the recorder", () => uncoloured(terminal.bytes()).includes(FINISHED.at(-1)!));
    const bytes = terminal.bytes();
    expect(reprinted(bytes, FINISHED)).toEqual([]);
    expect(FINISHED.filter((line) => !uncoloured(bytes).includes(line))).toEqual([]);
    expect(forbiddenIn(bytes)).toEqual([]);
    expect(bytes.length).toBeLessThan(20 * LONG.join("\n").length);
  });

  test("what is typed while an answer runs arrives exactly as typed, and the line is never torn", {
    timeout: 90_000,
  }, async () => {
    const { terminal, model } = await openChat(
      (said) => (said.includes("story") ? { say: PIECES.slice(0, 300), gapMs: 6 } : { say: "Heard." }),
      size,
    );
    await terminal.enter("a story");
    await terminal.sees("item 5 of");
    const words = "the quick brown fox, añejo 漢字 👩‍👩‍👧 jumps";
    for (const word of words.split(/(?<= )/)) {
      await terminal.type(word);
      await terminal.sees("›");
    }
    await terminal.sees("jumps");
    await terminal.press("M-Enter");
    await until("the second message", () => model.requests.length > 1, 60_000);
    expect(JSON.stringify(model.requests.at(-1)!.messages.at(-1))).toContain(words);
  });
});

test("the cursor stands at the caret behind wide letters, and a letter is taken away whole", async () => {
  const { terminal, model } = await openChat(() => ({ say: "ok" }));
  await terminal.type("漢字x");
  await terminal.sees("漢字x");
  await until("the caret", async () => (await terminal.cursor()).x === 7);
  await terminal.press("Left");
  await terminal.press("BSpace");
  await until("the caret", async () => (await terminal.cursor()).x === 4);
  await terminal.press("Enter");
  await until("the message", () => model.requests.length === 1);
  expect(JSON.stringify(model.requests[0]!.messages.at(-1))).toContain("漢x");
});

test("a line under way that a narrower terminal has broken is drawn anew and leaves nothing behind", async () => {
  const { terminal } = await openChat(() => ({ stall: "It was a dark and stormy night in the old harbour town, and" }), {
    columns: 62,
    rows: 20,
  });
  await terminal.enter("a story");
  await terminal.sees("old harbour town, and");
  await terminal.resize(21, 20);
  await terminal.sees(/It was a dark and\nstormy night in the\nold harbour town, and\n/);
  await terminal.resize(62, 20);
  await terminal.sees("night in the old harbour town, and");
  const all = await terminal.scrollback();
  for (const part of ["It was a dark", "› a story", "Esc stops", "connected"])
    expect([part, count(all, part)]).toEqual([part, 1]);
});
