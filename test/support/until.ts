import { setTimeout as sleep } from "node:timers/promises";

/** Waits for a condition. Throws an error that names it if it does not become true in time. */
export async function until<T>(
  what: string,
  check: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs = 30_000,
): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    const value = await check();
    if (value !== undefined && value !== false) return value;
    if (performance.now() > end) throw new Error(`waited ${withinMs} ms in vain for: ${what}`);
    await sleep(10);
  }
}
