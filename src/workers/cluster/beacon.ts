import { type Presence, PresenceAnswer } from "../../protocol/workers.ts";
import type { Link } from "../jobs/nats/link.ts";
import { presenceSubject } from "../jobs/nats/names.ts";
import { BEAT_MS } from "./presence.ts";

export interface BeaconDeps {
  link: Link;
  /** The worker's current state. */
  describe: () => Presence;
  /** Called once: finish the running jobs and take no more. */
  onDrain: () => void;
  /** Called once: end, with the reason. */
  onRefused: (reason: string) => void;
}

export interface Beacon {
  /** Reports now; resolves when the daemon has answered, or will not. */
  say(): Promise<void>;
  stop(): void;
}

/** Reports every few seconds that a worker is alive, and obeys the answer. It continues if nobody listens. */
export function startBeacon({ link, describe, onDrain, onRefused }: BeaconDeps): Beacon {
  let stopped = false;
  let lastState: PresenceAnswer["state"] = "welcome";

  async function say(): Promise<void> {
    if (stopped || link.connection.isClosed()) return;
    const answered = await link.ask("presence", describe(), { subject: presenceSubject(link.name), timeoutMs: BEAT_MS });
    // No answer changes nothing: the daemon or the server is away.
    const answer = typeof answered === "string" ? undefined : PresenceAnswer.safeParse(answered.data).data;
    if (stopped || !answer || answer.state === lastState) return;
    lastState = answer.state;
    if (answer.state === "drain") onDrain();
    if (answer.state === "refused") onRefused(answer.reason ?? "The daemon does not want this worker.");
  }

  const timer = setInterval(() => void say(), BEAT_MS);
  return {
    say,
    stop() {
      stopped = true;
      clearInterval(timer);
    },
  };
}
