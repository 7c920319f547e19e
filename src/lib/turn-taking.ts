/** Does one thing at a time for each name, in the order they came; one that failed does not keep the next from its turn. */
export function createTurnTaking() {
  const latest = new Map<string, Promise<unknown>>();
  return <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const before = latest.get(name)?.catch(() => undefined) ?? Promise.resolve();
    const turn = before.then(work);
    latest.set(name, turn);
    return turn.finally(() => {
      if (latest.get(name) === turn) latest.delete(name);
    });
  };
}
