import { type Automaton, automatonOf } from "./automaton.ts";

/** Why a pattern may take more than linear time, and a text that shows it. */
export interface Doubt {
  why: string;
  prefix: string;
  pump: string;
}

/**
 * Finds a reason why a pattern may not run in linear time on every text. It does not if two different loops can both continue
 * forever over the same letters and one is reachable from the other: then each letter doubles the number of ways to match, or
 * starts a new one.
 */
export function doubtOf(source: string, flags: string): Doubt | undefined {
  const machine = automatonOf(source, flags);
  if (machine.beyond) return { why: "it refers back, or looks back without end", prefix: "", pump: "" };
  const graph = graphOf(machine);
  for (const [from, to] of machine.double) {
    if (!machine.certain[from] && !machine.certain[to] && graph.reaches[to]!.has(from))
      return { why: "a repetition within a repetition", prefix: graph.wayTo(from), pump: graph.wayFrom(from, to) };
  }
  for (const p of graph.cyclic) {
    for (const q of graph.cyclic) {
      if (p === q || !graph.reaches[p]!.has(q)) continue;
      const pump = sharedWord(graph, p, q);
      if (pump !== undefined) return { why: "two repetitions take the same letters", prefix: graph.wayTo(p), pump };
    }
  }
  return undefined;
}

/** Texts that make a pattern work as hard as possible: a way into each of its loops, many rounds, and no way out. */
export function hardTexts(source: string, flags: string, size: number): string[] {
  const machine = automatonOf(source, flags);
  const graph = graphOf({ ...machine, certain: machine.certain.map(() => false) });
  const doubt = doubtOf(source, flags);
  const loops = graph.cyclic.map((state) => ({ prefix: graph.wayTo(state), pump: graph.wayFrom(state, state) || "a" }));
  const beginnings = machine.letters.slice(0, 12).map((pump) => ({ prefix: "", pump }));
  const whole = graph.cyclic.map((state) => ({ prefix: "", pump: graph.wayTo(state) + graph.wayFrom(state, state) || "a" }));
  const all = [...(doubt ? [doubt] : []), ...loops, ...whole, ...beginnings].filter(({ pump }) => pump !== "");
  const texts = all.map(({ prefix, pump }) => prefix + pump.repeat(Math.ceil(size / pump.length)).slice(0, size));
  return [...new Set(texts.flatMap((text) => [text, `${text}\u0000`]))];
}

type Graph = ReturnType<typeof graphOf>;

function graphOf({ takes, follow, certain, letters, starts }: Automaton) {
  const size = takes.length;
  const next = follow.map((states, from) => (certain[from] ? [] : [...states].filter((state) => !certain[state])));
  const step = (from: number, letter: number) => next[from]!.filter((state) => takes[state]![letter]);
  const reaches = next.map((_, from) => reachedFrom(from, next));
  const live = new Set(starts.flatMap((start) => [start, ...reaches[start]!]));
  const cyclic = Array.from({ length: size }, (_, state) => state).filter(
    (state) => live.has(state) && reaches[state]!.has(state),
  );
  const letterOf = (state: number) => letters[takes[state]!.findIndex(Boolean)] ?? "";

  function wayFrom(from: number, to: number): string {
    const seen = new Map<number, string>();
    const queue: [number, string][] = next[from]!.map((state) => [state, letterOf(state)]);
    for (const [state, way] of queue) {
      if (seen.has(state)) continue;
      seen.set(state, way);
      if (state === to) return way;
      for (const follower of next[state]!) queue.push([follower, way + letterOf(follower)]);
    }
    return "";
  }
  const wayTo = (to: number) =>
    starts
      .map((start) => (start === to ? "" : wayFrom(start, to)))
      .sort((a, b) => a.length - b.length)
      .find((way) => way !== "") ?? "";
  return { letters, step, reaches, cyclic, wayFrom, wayTo };
}

function reachedFrom(from: number, next: readonly number[][]): Set<number> {
  const seen = new Set<number>();
  const queue = [...next[from]!];
  for (const state of queue) {
    if (seen.has(state)) continue;
    seen.add(state);
    queue.push(...next[state]!);
  }
  return seen;
}

/** A word that leads from p to p, from p to q, and from q to q. */
function sharedWord({ letters, step, reaches }: Graph, p: number, q: number): string | undefined {
  const seen = new Set<string>();
  const queue: { at: [number, number, number]; word: string }[] = [{ at: [p, p, q], word: "" }];
  for (const {
    at: [a, b, c],
    word,
  } of queue) {
    for (const [index, letter] of letters.entries()) {
      const first = step(a, index).filter((state) => state === p || reaches[state]!.has(p));
      const third = step(c, index).filter((state) => state === q || reaches[state]!.has(q));
      if (first.length === 0 || third.length === 0) continue;
      for (const middle of step(b, index).filter((state) => state === q || reaches[state]!.has(q))) {
        for (const x of first) {
          for (const z of third) {
            if (x === p && middle === q && z === q) return word + letter;
            const key = `${x} ${middle} ${z}`;
            if (seen.has(key)) continue;
            seen.add(key);
            queue.push({ at: [x, middle, z], word: word + letter });
          }
        }
      }
    }
    if (seen.size > 200_000) return "";
  }
  return undefined;
}
