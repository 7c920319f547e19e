import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createApp, effectScope } from "vue";
import { createIo, IO } from "../../web/src/io.ts";
import { useLoaded } from "../../web/src/live/load.ts";
import { usePages } from "../../web/src/live/pages.ts";
import { until } from "../support/until.ts";

/** Runs work as in a view's setup, until the test ends. */
function inView<T>(work: () => T): T {
  const scope = effectScope();
  onTestFinished(() => scope.stop());
  const app = createApp({}).provide(IO, createIo());
  return app.runWithContext(() => scope.run(work)!);
}

/** Questions that the test answers in any order. */
function questions<T>() {
  const open: ((answer: T) => void)[] = [];
  return { open, ask: () => new Promise<T>((answer) => open.push(answer)) };
}

describe("an answer that comes late", () => {
  test("does not replace one that was asked for after it", async () => {
    const { open, ask } = questions<string>();
    const { data, reload } = inView(() => useLoaded(ask));
    void reload();
    open[1]?.("newer");
    await until("the newer answer", () => data.value === "newer");
    open[0]?.("older");
    await new Promise((resolve) => setImmediate(resolve));
    expect(data.value).toBe("newer");
  });

  test("does not replace a page of a list that was asked for after it", async () => {
    const { open, ask } = questions<Response>();
    vi.stubGlobal("fetch", ask);
    onTestFinished(() => void vi.unstubAllGlobals());
    const answer = (...items: string[]) => Response.json({ items });
    const { items, reset } = inView(() => usePages<string>(() => "/api/x", String, { on: [] }));
    reset();
    open[1]?.(answer("newer"));
    await until("the newer page", () => items.value?.[0] === "newer");
    const older = answer("older");
    open[0]?.(older);
    await until("the older page was read", () => older.bodyUsed);
    await new Promise((resolve) => setImmediate(resolve));
    expect(items.value).toEqual(["newer"]);
  });
});
