import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { afterAll, expect, test } from "vitest";
import { collectPatterns } from "../support/patterns/collect.ts";
import { hardTexts } from "../support/patterns/linear.ts";
import { BOUNDED, COMPOSED, WINDOWS } from "../support/patterns/table.ts";

const MEGABYTE = 1_000_000;
const MOST_MS = 100;
/** How many texts each pattern is given at full length, and by what factor the texts used to choose them are shorter. */
const HARDEST = 1;
const SHORTER = 16;
/** A pattern that takes longer is considered endless. */
const DEADLINE_MS = 20_000;
const TRIES = 3;

let worker: Worker | undefined;
afterAll(() => worker?.terminate());

/** How long a pattern takes on a text, and how long it takes to replace the text's letters one by one, in milliseconds. */
async function time(source: string, flags: string, text: string): Promise<{ ms: number; letters: number }> {
  worker ??= new Worker(new URL("../support/patterns/timer.mjs", import.meta.url));
  worker.postMessage({ source, flags, text });
  try {
    const [taken] = await once(worker, "message", { signal: AbortSignal.timeout(DEADLINE_MS) });
    return taken;
  } catch {
    // The deadline has passed: the thread is terminated.
    await worker.terminate();
    worker = undefined;
    return { ms: Number.POSITIVE_INFINITY, letters: 0 };
  }
}

const mostFor = (file: string, source: string) =>
  WINDOWS[file] ?? BOUNDED.find((one) => one.file === file && one.source === source)?.most ?? MEGABYTE;

/** Chooses the hard texts on which a pattern takes longest when they are short: the others are no harder when long. */
async function hardestTexts(source: string, flags: string, length: number): Promise<string[]> {
  const texts = hardTexts(source, flags, length);
  if (texts.length <= HARDEST) return texts;
  const short = hardTexts(source, flags, Math.ceil(length / SHORTER));
  const times: number[] = [];
  for (const text of short) times.push((await time(source, flags, text)).ms);
  const order = [...texts.keys()].sort((a, b) => times[b]! - times[a]!);
  return order.slice(0, HARDEST).map((index) => texts[index]!);
}

/** The time on a text in milliseconds, if it is too long in every try: on a busy machine, a single try may be held up. */
async function overMost(source: string, flags: string, text: string): Promise<number | undefined> {
  let least = Number.POSITIVE_INFINITY;
  for (let tried = 1; tried <= TRIES; tried += 1) {
    const { ms, letters } = await time(source, flags, text);
    // Compared with what takes the least possible time on this text.
    if (ms <= Math.max(MOST_MS, 4 * letters)) return undefined;
    least = Math.min(least, ms);
  }
  return least;
}

test("every pattern reads the longest text it can meet, at its worst, in under 100 ms", { timeout: 900_000 }, async () => {
  const { patterns } = collectPatterns();
  const made = COMPOSED.flatMap(({ file, instances }) => instances.map(([source, flags]) => ({ file, line: 0, source, flags })));
  const slow: string[] = [];
  for (const { file, line, source, flags } of [...patterns, ...made]) {
    for (const text of await hardestTexts(source, flags, mostFor(file, source))) {
      const ms = await overMost(source, flags, text);
      if (ms === undefined) continue;
      slow.push(`${file}:${line} /${source}/${flags} took ${Math.round(ms)} ms on ${JSON.stringify(text.slice(0, 40))} …`);
      break;
    }
  }
  expect(slow.join("\n")).toBe("");
});

test("a pattern that is not linear is seen to be slow, so that the test above means something", async () => {
  const slow = await Promise.all(
    hardTexts("\\s+$", "", 20_000)
      .slice(0, 1)
      .map((text) => time("\\s+$", "", `${text}x`)),
  );
  expect(slow.map(({ ms, letters }) => ms > Math.max(MOST_MS, 4 * letters))).toEqual([true]);
});
