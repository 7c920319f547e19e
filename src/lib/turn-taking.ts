/** Serialises work per name, in order of arrival; a failed job does not stop the next. */
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
