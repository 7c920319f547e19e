/** A turn's own time, which pauses while something waits for a person. */
export interface TurnClock {
  /** Pauses it until the returned function is called; it resumes when every pause has ended. */
  pause(): () => void;
  /** Calls back once this much of the turn's time has passed since the last restart. */
  countdown(ms: number, onEnd: () => void): Countdown;
}

export interface Countdown {
  /** Restarts the timer. */
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
          // Every sign of life restarts it, so the existing timer is reused.
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
