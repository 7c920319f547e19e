const SLICE_MS = 10;

/** Awaited between the steps of long work. */
export type Breath = () => Promise<void> | undefined;

/** Yields to the event loop every few milliseconds, and throws when the signal aborts. */
export function createBreath(signal?: AbortSignal): Breath {
  let until = performance.now() + SLICE_MS;
  return () => {
    if (performance.now() < until) return undefined;
    signal?.throwIfAborted();
    return new Promise((resume) =>
      setImmediate(() => {
        until = performance.now() + SLICE_MS;
        resume();
      }),
    );
  };
}
