export interface TurnsDeps {
  /** Writes down whose a turn is, and says it: a turn that an earlier life gave keeps its owner. */
  give: (turn: number, first: number) => Promise<number>;
  /** Told when a turn waits for a stream that has not come yet. */
  onAwait: () => void;
}

/**
 * Lets streams merge one after another, in the order they came. A resumed run keeps the order of its earlier lives: a stream
 * that was cut off in its turn goes on before any other touches the run's branch.
 */
export function createTurns({ give, onAwait }: TurnsDeps) {
  const waiting = new Map<number, { go: () => Promise<void>; fail: (error: unknown) => void }>();
  const ended = new Set<number>();
  let turn = 0;
  let owner: number | undefined;
  let busy = false;

  async function goOn(): Promise<void> {
    if (busy) return;
    busy = true;
    try {
      for (let [first] = waiting.keys(); first !== undefined; [first] = waiting.keys()) {
        if (owner === undefined) {
          turn += 1;
          owner = await give(turn, first);
        }
        const next = waiting.get(owner);
        if (!next && !ended.has(owner)) return onAwait();
        waiting.delete(owner);
        await next?.go();
        owner = undefined;
      }
    } catch (error) {
      for (const { fail } of waiting.values()) fail(error);
      waiting.clear();
    } finally {
      busy = false;
    }
  }

  return {
    /** Does a stream's work when its turn has come. */
    take<T>(stream: number, work: () => Promise<T>): Promise<T> {
      return new Promise((done, fail) => {
        waiting.set(stream, { go: () => work().then(done, fail), fail });
        void goOn();
      });
    },
    /** A stream that has ended takes no turn any more. */
    end(stream: number): void {
      ended.add(stream);
      void goOn();
    },
    awaits: (stream: number): boolean => owner === stream && !busy,
  };
}
export type Turns = ReturnType<typeof createTurns>;
