/** Passes each value to the current listeners; stores nothing. */
export interface Broadcast<T> {
  tell(thing: T): void;
  subscribe(listener: (thing: T) => void): () => void;
}

export function createBroadcast<T>(): Broadcast<T> {
  const listeners = new Set<(thing: T) => void>();
  return {
    tell(thing) {
      for (const listener of listeners) listener(thing);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
