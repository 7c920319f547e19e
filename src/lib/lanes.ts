/** Work in lanes: one thing at a time within a lane, lanes side by side. */
export interface Lanes {
  /** There is something to do in a lane. Does nothing while the lanes are closed. */
  kick(lane: string): void;
  open(): void;
  isOpen(): boolean;
  /** Begins nothing new, and waits for what is under way. */
  close(): Promise<void>;
}

export interface LanesDeps {
  /** Does everything there is to do in a lane. */
  work: (lane: string) => Promise<void>;
  /** Told of work that failed; it is tried again after a while. */
  onFailure: (lane: string, error: unknown) => void;
  retryMs?: number;
}

/** How long a lane waits that could not go on, for instance because the disk was full. */
const RETRY_MS = 3_000;

export function createLanes({ work, onFailure, retryMs = RETRY_MS }: LanesDeps): Lanes {
  const busy = new Map<string, { kicked: boolean; ended: Promise<void> }>();
  let open = false;

  function kick(lane: string): void {
    if (!open) return;
    const current = busy.get(lane);
    if (current) {
      // It may just have seen that nothing was left.
      current.kicked = true;
      return;
    }
    const state = { kicked: true, ended: Promise.resolve() };
    busy.set(lane, state);
    state.ended = run(lane, state);
  }

  async function run(lane: string, state: { kicked: boolean }): Promise<void> {
    try {
      while (open && state.kicked) {
        state.kicked = false;
        await work(lane);
      }
    } catch (error) {
      onFailure(lane, error);
      setTimeout(() => kick(lane), retryMs).unref();
    } finally {
      busy.delete(lane);
    }
  }

  return {
    kick,
    open: () => {
      open = true;
    },
    isOpen: () => open,
    async close() {
      open = false;
      await Promise.all([...busy.values()].map(({ ended }) => ended));
    },
  };
}
