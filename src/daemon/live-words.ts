import { type Broadcast, createBroadcast } from "../lib/broadcast.ts";
import type { Said, SaidSoFar, Words } from "../protocol/runs.ts";

/** Of how many steps what they say is kept, and how much of each: the end of it. */
const STEPS = 50;
const KEPT = 64_000;

/** What the agents of runs and plans say and do: told to those who listen, and kept for those who come in the middle of a step. */
export interface LiveWords extends Pick<Broadcast<Words>, "subscribe"> {
  hear(said: Said, owner: string): void;
  /** What a step said since its character `after`; undefined where nothing of it is kept. */
  soFar(owner: string, key: string, after?: number): SaidSoFar | undefined;
}

export function createLiveWords(): LiveWords {
  const { tell, subscribe } = createBroadcast<Words>();
  /** The one that was heard last stands last. `from` counts what was dropped before its text. */
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
      // Who follows the words in a terminal is told of tools by the run's own events.
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
