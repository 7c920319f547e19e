import type { CopilotSession } from "@github/copilot-sdk";
import type { Steering } from "../../protocol/turns.ts";

export interface SteererDeps {
  sdk: Pick<CopilotSession, "send">;
  steering: Steering | undefined;
  /** Texts that the session's log already contains, from an earlier attempt at the turn. */
  heard: ReadonlySet<number>;
  onFailure: (error: unknown) => void;
}

/** Sends texts into a running turn, in order, and tracks which of them the session has processed. */
export interface Steerer {
  /** The prompt was accepted: from now on texts may be sent. */
  start(): void;
  /** The session accepted a prompt; returns whether it is one of these texts. */
  took(promptId: string): boolean;
  /** Closes it if nothing is pending; false if the session will continue with a pending text. */
  end(): boolean;
  stop(): void;
}

export function createSteerer({ sdk, steering, heard, onFailure }: SteererDeps): Steerer {
  const sent = new Set(heard);
  const ids = new Set<string>();
  const taken = new Set<string>();
  let sending = Promise.resolve();
  let waiting = 0;
  let stopFollowing = () => {};

  const sayMore = () => {
    for (const { seq, text } of steering?.said() ?? []) {
      if (sent.has(seq)) continue;
      sent.add(seq);
      waiting += 1;
      sending = sending
        .then(() => sdk.send({ prompt: text.toWellFormed(), mode: "immediate" }))
        .then((promptId) => {
          ids.add(promptId);
          steering?.accepted(seq, promptId);
        })
        .catch(onFailure)
        .finally(() => {
          waiting -= 1;
        });
    }
  };
  return {
    start() {
      stopFollowing = steering?.onMore(sayMore) ?? stopFollowing;
      sayMore();
    },
    took(promptId) {
      // The event of a prompt can arrive before the reply that names it.
      taken.add(promptId);
      return ids.has(promptId) || waiting > 0;
    },
    end() {
      if (waiting > 0 || [...ids].some((id) => !taken.has(id))) return false;
      steering?.close();
      return true;
    },
    stop() {
      stopFollowing();
      steering?.close();
    },
  };
}
