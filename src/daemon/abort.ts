/** Waits for work that cannot be ended itself; closing what it works on is up to the caller. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  // Nobody is left to hear of its failure once it is given up.
  work.catch(() => undefined);
  signal.throwIfAborted();
  const aborted = new Promise<never>((_, fail) => signal.addEventListener("abort", () => fail(signal.reason), { once: true }));
  aborted.catch(() => undefined);
  return Promise.race([work, aborted]);
}
