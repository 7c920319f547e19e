/** A call's place among those of its message, task or step. */
export interface OrderedCall {
  /** Resolves when every earlier change to a file has ended. */
  ready: Promise<void>;
  /** Lets later calls go ahead. May be called more than once. */
  release(): void;
}

/**
 * A model may ask for several calls in one answer, and the runtime makes them all at once. Changes to files happen in the order they
 * were asked for, and later calls see them: two edits of one file are then both made.
 */
export function createCallOrder() {
  const lastChange = new Map<string, Promise<void>>();
  return {
    enter(owner: string, changesFile: boolean): OrderedCall {
      const ready = lastChange.get(owner) ?? Promise.resolve();
      if (!changesFile) return { ready, release: () => {} };
      let done = () => {};
      const released = new Promise<void>((resolve) => {
        done = resolve;
      });
      const last = ready.then(() => released);
      lastChange.set(owner, last);
      void last.then(() => {
        if (lastChange.get(owner) === last) lastChange.delete(owner);
      });
      return { ready, release: done };
    },
  };
}
