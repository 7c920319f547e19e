import { expect, test } from "vitest";
import { silenceOf, throughCorpus } from "../../bench/silence.ts";
import type { Item } from "../../bench/silence-inputs.ts";
import { throughRequests } from "../../bench/silence-requests.ts";

/** Twice the limit of `npm run bench -- silence` on an idle machine: here, other processes may use the same cores. */
const MOST_MS = 100;

test.each([
  ["corpus", throughCorpus],
  ["requests", throughRequests],
])("nothing of the hostile %s silences the event loop", { timeout: 600_000 }, async (_, through) => {
  const silent: string[] = [];
  await through("", async ({ what, work }: Item) => {
    let { own } = await silenceOf(work);
    // A second measurement distinguishes a slow item from a slow machine.
    if (own > MOST_MS) own = Math.min(own, (await silenceOf(work)).own);
    if (own > MOST_MS) silent.push(`${what}: ${Math.round(own)} ms`);
  });
  expect(silent).toEqual([]);
});
