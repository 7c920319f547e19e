import { type Broadcast, createBroadcast } from "../lib/broadcast.ts";
import type { Said, SaidSoFar, Words } from "../protocol/runs.ts";

/** For how many steps the words are kept, and how many characters of each, from the end. */
const STEPS = 50;
const KEPT = 64_000;

/** What the agents of runs and plans say and do: sent to subscribers, and kept for those who join in the middle of a step. */
export interface LiveWords extends Pick<Broadcast<Words>, "subscribe"> {
  hear(said: Said, owner: string): void;
  /** A step's words since the character `after`; undefined if none are kept. */
  soFar(owner: string, key: string, after?: number): SaidSoFar | undefined;
}

export function createLiveWords(): LiveWords {
  const { tell, subscribe } = createBroadcast<Words>();
  /** The most recently heard is last. `from` counts the characters dropped before its text. */
  const steps = new Map<string, { from: number; text: string }>();
  return {
    subscribe,
    hear(said, owner) {
      const id = `${owner} ${said.key}`;
      const before = steps.get(id) ?? { from: 0, text: "" };
      const whole = before.text + (said.did ?? said.text);
      const dropped = Math.max(0, whole.length - KEPT);
      steps.delete(id);
      steps.set(id, { from: before.from + dropped, text: whole.slice(dropped) });
      for (const oldest of [...steps.keys()].slice(0, Math.max(0, steps.size - STEPS))) steps.delete(oldest);
      // Followers in a terminal learn about tools from the run's own events.
      if (said.text !== "") tell({ key: said.key, agent: said.agent, stream: said.stream, text: said.text, owner });
    },
    soFar(owner, key, after = 0) {
      const known = steps.get(`${owner} ${key}`);
      if (!known) return undefined;
      const from = Math.max(known.from, after);
      return { from, text: known.text.slice(from - known.from) };
    },
  };
}
