import { type Presence, PresenceAnswer } from "../../protocol/workers.ts";
import type { Link } from "../jobs/nats/link.ts";
import { presenceSubject } from "../jobs/nats/names.ts";
import { BEAT_MS } from "./presence.ts";

export interface BeaconDeps {
  link: Link;
  /** What the worker says of itself just now. */
  describe: () => Presence;
  /** It is to finish what it has, and take no more. Told once. */
  onDrain: () => void;
  /** It is to end, and why. Told once. */
  onRefused: (reason: string) => void;
}

export interface Beacon {
  /** Says it now; resolves when that was answered, or will not be. */
  say(): Promise<void>;
  stop(): void;
}

/** Says every few seconds that a worker is there, and hears what is wanted of it. Where nobody listens it goes on. */
export function startBeacon({ link, describe, onDrain, onRefused }: BeaconDeps): Beacon {
  let stopped = false;
  let told: PresenceAnswer["state"] = "welcome";

  async function say(): Promise<void> {
    if (stopped || link.connection.isClosed()) return;
    const answered = await link.ask("presence", describe(), { subject: presenceSubject(link.name), timeoutMs: BEAT_MS });
    // No answer is no news: the daemon is away, or the server is.
    const answer = typeof answered === "string" ? undefined : PresenceAnswer.safeParse(answered.data).data;
    if (stopped || !answer || answer.state === told) return;
    told = answer.state;
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
