export interface Update {
  update_id: number;
  [field: string]: unknown;
}

interface Poll {
  offset: number;
  limit: number;
  timeoutMs: number;
  /** The kinds of updates wanted from now on; undefined leaves them unchanged. */
  allowed: readonly string[] | undefined;
  /** Registers what to do when the client hangs up. */
  gone: (left: () => void) => void;
}

/** Holds updates until a later offset confirms them. */
export function createUpdates(onAdd: (update: Update) => void = () => undefined) {
  let nextId = 500;
  let waiting: Update[] = [];
  /** Late updates are held only until they have been delivered once. */
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
    /** Delivers an update again, or late. */
    again(update: Update): void {
      late.push(update);
      wake();
    },
    /** Takes an update id without delivering the update, so that it can come late. */
    skip: () => nextId++,
    confirmed: () => confirmed,
    waiting: () => waiting.length + late.length,
    take({ offset, limit, timeoutMs, allowed, gone }: Poll): Promise<Update[] | "another"> {
      current?.("another");
      wanted = allowed ?? wanted;
      // A negative offset counts from the end. Earlier updates are dropped.
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
