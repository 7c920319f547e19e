/** How to put away what was opened, so that no path has to remember it. */
export interface Closers {
  /** To be called as soon as something is open. */
  add(close: () => void | Promise<void>): void;
  /** Closes everything, the last opened first. What cannot be closed keeps nothing else open; it is thrown at the end. */
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

/** Opens something made of several; if that fails half-way, what is open by then is closed again. */
export async function withClosers<T>(open: (closers: Closers) => Promise<T>): Promise<T> {
  const closers = createClosers();
  try {
    return await open(closers);
  } catch (error) {
    // What failed first is what a person has to know.
    await closers.close().catch(() => undefined);
    throw error;
  }
}
