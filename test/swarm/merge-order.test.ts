import { expect, test } from "vitest";
import { createTurns } from "../../src/swarm/streams/merge-order.ts";

test("a turn that an earlier life gave waits for its stream, and passes when that has ended", async () => {
  const order: number[] = [];
  const given = [2, 3];
  let awaited = 0;
  const turns = createTurns({
    give: async (turn, first) => given[turn - 1] ?? first,
    onAwait: () => {
      awaited += 1;
    },
  });
  const take = (stream: number) => turns.take(stream, async () => void order.push(stream));
  const one = take(1);
  await expect.poll(() => awaited).toBe(1);
  expect(turns.awaits(2)).toBe(true);
  await take(2);
  turns.end(2);
  await expect.poll(() => turns.awaits(3)).toBe(true);
  turns.end(3);
  await one;
  expect(order).toEqual([2, 1]);
});

test("when a turn cannot be given, all who wait are told", async () => {
  const turns = createTurns({ give: () => Promise.reject(new Error("stopped")), onAwait: () => {} });
  await expect(turns.take(1, async () => 1)).rejects.toThrow("stopped");
});
