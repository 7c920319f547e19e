export interface Update {
  update_id: number;
  [field: string]: unknown;
}

interface Poll {
  offset: number;
  limit: number;
  timeoutMs: number;
  /** The kinds that are wanted from now on; undefined leaves it as it was. */
  allowed: readonly string[] | undefined;
  /** Told what to do when whoever asked hangs up. */
  gone: (left: () => void) => void;
}

/** What waits to be fetched, until a later offset confirms it. */
export function createUpdates(onAdd: (update: Update) => void = () => undefined) {
  let nextId = 500;
  let waiting: Update[] = [];
  /** What comes late is there until it was told once. */
  let late: Update[] = [];
  let confirmed = 0;
  let wanted: readonly string[] | undefined;
  let current: ((answer: Update[] | "another") => void) | undefined;
  let wake: () => void = () => undefined;

  return {
    add(fields: Record<string, unknown>): Update {
      const update = { update_id: nextId++, ...fields };
      onAdd(update);
      if (!wanted || Object.keys(fields).some((kind) => wanted?.includes(kind))) waiting.push(update);
      wake();
      return update;
    },
    /** The same once more, or one that comes late. */
    again(update: Update): void {
      late.push(update);
      wake();
    },
    /** Takes a number without telling of it, so that it can come late. */
    skip: () => nextId++,
    confirmed: () => confirmed,
    waiting: () => waiting.length + late.length,
    take({ offset, limit, timeoutMs, allowed, gone }: Poll): Promise<Update[] | "another"> {
      current?.("another");
      wanted = allowed ?? wanted;
      // Counted from the end, and all before is forgotten.
      if (offset < 0) waiting = waiting.slice(offset);
      if (offset > confirmed) {
        confirmed = offset;
        waiting = waiting.filter(({ update_id }) => update_id >= offset);
      }
      return new Promise((done) => {
        const finish = (answer: Update[] | "another") => {
          clearTimeout(timer);
          if (current === finish) {
            current = undefined;
            wake = () => undefined;
          }
          done(answer);
        };
        const timer = setTimeout(() => finish([]), timeoutMs);
        current = finish;
        wake = () => {
          const due = [...waiting, ...late].slice(0, limit);
          late = late.filter((each) => !due.includes(each));
          if (due.length > 0) finish(due);
        };
        gone(() => finish([]));
        wake();
      });
    },
  };
}
