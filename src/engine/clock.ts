/** The time that counts against a turn. It stands still while something waits for a person. */
export interface TurnClock {
  /** Stops it until the answer is called; it goes on when everybody who stopped it has done so. */
  pause(): () => void;
  /** Ends something once so much of the turn's time has passed since it was last started. */
  countdown(ms: number, onEnd: () => void): Countdown;
}

export interface Countdown {
  /** Begins anew. */
  start(): void;
  stop(): void;
}

interface Running {
  halt(): void;
  goOn(): void;
}

export function createTurnClock(): TurnClock {
  const pauses = new Set<object>();
  const countdowns = new Set<Running>();
  return {
    pause() {
      const own = {};
      pauses.add(own);
      if (pauses.size === 1) for (const each of countdowns) each.halt();
      return () => {
        if (pauses.delete(own) && pauses.size === 0) for (const each of countdowns) each.goOn();
      };
    },
    countdown(ms, onEnd) {
      let timer: NodeJS.Timeout | undefined;
      let left = ms;
      let since = 0;
      const goOn = () => {
        since = performance.now();
        timer = setTimeout(onEnd, left);
      };
      const running: Running = {
        halt() {
          clearTimeout(timer);
          left = Math.max(0, left - (performance.now() - since));
        },
        goOn,
      };
      const stop = () => {
        clearTimeout(timer);
        countdowns.delete(running);
      };
      return {
        start() {
          // Every sign of life begins it anew, so that is done with the timer that is there.
          if (timer && left === ms && pauses.size === 0 && countdowns.has(running)) {
            since = performance.now();
            timer.refresh();
            return;
          }
          stop();
          left = ms;
          countdowns.add(running);
          if (pauses.size === 0) goOn();
        },
        stop,
      };
    },
  };
}
