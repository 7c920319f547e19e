import { expect, test } from "vitest";
import type { SessionSpec } from "../../src/engine/port.ts";
import { createPreparations } from "../../src/engine/sessions/preparations.ts";
import { until } from "../support/until.ts";

const spec = (id: string): SessionSpec => ({ id, systemMessage: () => "", tools: [], workingDirectory: "/" });

/** Preparations that end when the test says so. */
function begun(calmMs?: number) {
  const order: string[] = [];
  const ends = new Map<string, () => void>();
  const preparations = createPreparations(({ id }) => {
    order.push(id);
    return new Promise<void>((end) => ends.set(id, end));
  }, calmMs);
  return { ...preparations, order, end: (id: string) => ends.get(id)?.() };
}

test("sessions are made ready one at a time, in the order they were asked for", async () => {
  const { add, order, end } = begun();
  const all = ["a", "b", "c"].map((id) => add(spec(id)));
  expect(order).toEqual(["a"]);
  end("a");
  await all[0];
  expect(order).toEqual(["a", "b"]);
  end("b");
  await all[1];
  end("c");
  await Promise.all(all);
  expect(order).toEqual(["a", "b", "c"]);
  const later = add(spec("d"));
  expect(order.at(-1)).toBe("d");
  end("d");
  await later;
});

test("one that is asked before it was begun is left to its turn, and so are all when the runtime is stopped", async () => {
  const { add, leave, leaveAll, order, end } = begun();
  const [first, second, third] = ["a", "b", "c"].map((id) => add(spec(id)));
  leave("b");
  await second;
  leave("a");
  leaveAll();
  await third;
  end("a");
  await first;
  expect(order).toEqual(["a"]);
});

test("one that is asked for twice is made ready once, as it was asked for last", async () => {
  const { add, order, end } = begun();
  const first = add(spec("a"));
  const early = add(spec("b"));
  const late = add(spec("b"));
  await early;
  end("a");
  await first;
  end("b");
  await late;
  expect(order).toEqual(["a", "b"]);
});

test("nothing is made ready while somebody is asked or answers, and everything once that is over", async () => {
  const { add, stir, leave, order, end } = begun(500);
  const started = performance.now();
  let stirredAt = started;
  const stirs = setInterval(() => {
    stir();
    stirredAt = performance.now();
  }, 5);
  stir();
  const [first, second] = [add(spec("a")), add(spec("b"))];
  await until("it has had the time to begin", () => stirredAt - started > 700);
  expect(order).toEqual([]);
  leave("a");
  await first;
  clearInterval(stirs);
  await until("it has begun", () => order.length > 0);
  expect([order, performance.now() - stirredAt >= 499]).toEqual([["b"], true]);
  end("b");
  await second;
});
