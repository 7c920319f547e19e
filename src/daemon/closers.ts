/** A stack of closers for what was opened. */
export interface Closers {
  /** Call this as soon as something is open. */
  add(close: () => void | Promise<void>): void;
  /** Closes everything, the last opened first. A failing closer does not stop the others; its error is thrown at the end. */
  close(): Promise<void>;
}

export function createClosers(): Closers {
  const stack: (() => void | Promise<void>)[] = [];
  return {
    add: (close) => void stack.push(close),
    async close() {
      const failures: unknown[] = [];
      for (let close = stack.pop(); close; close = stack.pop()) {
        try {
          await close();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length === 1) throw failures[0];
      if (failures.length > 1) throw new AggregateError(failures, failures.map(String).join("; "));
    },
  };
}

/** Opens something with several parts; if that fails half-way, closes the parts that are open. */
export async function withClosers<T>(open: (closers: Closers) => Promise<T>): Promise<T> {
  const closers = createClosers();
  try {
    return await open(closers);
  } catch (error) {
    // A person needs to know the first failure.
    await closers.close().catch(() => undefined);
    throw error;
  }
}
