export interface TurnsDeps {
  /** Records which stream has a turn, and returns it: a turn given in an earlier life keeps its stream. */
  give: (turn: number, first: number) => Promise<number>;
  /** Called when a turn has to wait for a stream that is not ready yet. */
  onAwait: () => void;
}

/**
 * Lets streams merge one after another, in the order in which they are ready. A resumed run keeps the order of its earlier lives:
 * a stream interrupted while merging continues before another touches the run's branch.
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
    /** Does the work when it is the stream's turn. */
    take<T>(stream: number, work: () => Promise<T>): Promise<T> {
      return new Promise((done, fail) => {
        waiting.set(stream, { go: () => work().then(done, fail), fail });
        void goOn();
      });
    },
    /** Marks a stream as ended: it needs no turn. */
    end(stream: number): void {
      ended.add(stream);
      void goOn();
    },
    awaits: (stream: number): boolean => owner === stream && !busy,
  };
}
export type Turns = ReturnType<typeof createTurns>;
