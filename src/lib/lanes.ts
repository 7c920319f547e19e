/** Queues by name: one job at a time within a lane, lanes in parallel. */
export interface Lanes {
  /** Tells a lane that it has work. Does nothing while the lanes are closed. */
  kick(lane: string): void;
  open(): void;
  isOpen(): boolean;
  /** Starts nothing new, and waits for running work. */
  close(): Promise<void>;
}

export interface LanesDeps {
  /** Does all the work of a lane. */
  work: (lane: string) => Promise<void>;
  /** Called when work failed; it is retried after a delay. */
  onFailure: (lane: string, error: unknown) => void;
  retryMs?: number;
}

/** The delay before a failed lane is retried, for instance after a full disk. */
const RETRY_MS = 3_000;

export function createLanes({ work, onFailure, retryMs = RETRY_MS }: LanesDeps): Lanes {
  const busy = new Map<string, { kicked: boolean; ended: Promise<void> }>();
  let open = false;

  function kick(lane: string): void {
    if (!open) return;
    const current = busy.get(lane);
    if (current) {
      // It may have just decided that nothing was left.
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
