/** Awaits work that cannot itself be aborted; the caller closes what it works on. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  // Once aborted, nobody handles its failure.
  work.catch(() => undefined);
  signal.throwIfAborted();
  const aborted = new Promise<never>((_, fail) => signal.addEventListener("abort", () => fail(signal.reason), { once: true }));
  aborted.catch(() => undefined);
  return Promise.race([work, aborted]);
}
