export interface IdleEndOptions {
  /** How long the daemon must be idle before it ends. */
  lingerMs?: number;
  everyMs?: number;
}

/** Decides when a daemon that was started for one piece of work has nothing left to do. */
export function createIdleEnd({ lingerMs = 8_000, everyMs = 1_000 }: IdleEndOptions = {}) {
  let timer: NodeJS.Timeout | undefined;
  const stay = () => {
    clearInterval(timer);
    timer = undefined;
  };
  return {
    /** From now on it does not end by itself. */
    stay,
    isOn: () => timer !== undefined,
    /** Resolves after nobody was connected and nothing was left to do for a while. */
    start: (isBusy: () => Promise<boolean>) =>
      new Promise<void>((end) => {
        let busyAt = performance.now();
        timer = setInterval(async () => {
          if (await isBusy()) busyAt = performance.now();
          if (performance.now() - busyAt < lingerMs) return;
          stay();
          end();
        }, everyMs);
      }),
  };
}
