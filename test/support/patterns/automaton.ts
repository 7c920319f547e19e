import { type Node, parsePattern } from "./parse.ts";

/** A pattern as an automaton: its letters are the states. Says which may follow which, and where a match is certain. */
export interface Automaton {
  /** For each state, which letter classes it accepts. The first two states are what precedes a match. */
  takes: boolean[][];
  follow: Set<number>[];
  /** Pairs of states that follow each other in more than one way. */
  double: [from: number, to: number][];
  certain: boolean[];
  /** One letter of each class. */
  letters: string[];
  /** True if the pattern contains something that this analysis does not cover. */
  beyond: boolean;
  /** The states from which a match may begin. */
  starts: number[];
}

type Condition = "none" | "end" | "other";
interface Fragment {
  empty: { anchored: boolean; condition: Condition } | undefined;
  first: { state: number; anchored: boolean }[];
  last: { state: number; condition: Condition }[];
}

/** Accepts any letter before a match begins. AFTER_LINE accepts only line ends, for `^` with the flag m. */
const ANYWHERE = 0;
const AFTER_LINE = 1;
const COPIES = 2;
const SAMPLE = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
  ..."\u0085\u00a0\u00adéßſςσΣK٣中\u0300\u200b\u200d\u2028\u2029\u202e\ufeff…–—‘’“”→✓✅❌\u{1f6ab}\u{1f600}\u{e0041}",
  "\ud800",
  "\udc00",
];

export function automatonOf(source: string, flags: string): Automaton {
  const lines = flags.includes("m");
  const spellings: string[] = ["[\\s\\S]", "[\\s\\S]"];
  const follow: Set<number>[] = [new Set([ANYWHERE]), new Set()];
  const double = new Map<string, [number, number]>();
  let beyond = false;

  const letter = (spelling: string): Fragment => {
    const state = spellings.push(spelling) - 1;
    follow.push(new Set());
    return { empty: undefined, first: [{ state, anchored: false }], last: [{ state, condition: "none" }] };
  };
  const link = (from: Fragment, to: Fragment) => {
    for (const { state } of from.last) {
      for (const next of to.first) {
        if (next.anchored && !lines) continue;
        if (follow[state]!.has(next.state)) double.set(`${state} ${next.state}`, [state, next.state]);
        follow[state]!.add(next.state);
      }
    }
  };
  const worse = (a: Condition, b: Condition): Condition => (a === "none" ? b : b === "none" ? a : "other");
  const nothing = (condition: Condition, anchored = false): Fragment => ({ empty: { anchored, condition }, first: [], last: [] });

  function then(a: Fragment, b: Fragment): Fragment {
    link(a, b);
    return {
      empty: a.empty &&
        b.empty && {
          anchored: a.empty.anchored || b.empty.anchored,
          condition: worse(a.empty.condition, b.empty.condition),
        },
      first: [...a.first, ...(a.empty ? b.first.map((one) => ({ ...one, anchored: one.anchored || a.empty!.anchored })) : [])],
      last: [
        ...b.last,
        ...(b.empty ? a.last.map((one) => ({ ...one, condition: worse(one.condition, b.empty!.condition) })) : []),
      ],
    };
  }

  function either(parts: Fragment[]): Fragment {
    const empties = parts.flatMap(({ empty }) => empty ?? []);
    return {
      empty: empties.find(({ anchored, condition }) => !anchored && condition === "none") ?? empties[0],
      first: parts.flatMap(({ first }) => first),
      last: parts.flatMap(({ last }) => last),
    };
  }

  function repeat(node: Node, min: number, max: number): Fragment {
    const optional = (fragment: Fragment): Fragment => ({ ...fragment, empty: { anchored: false, condition: "none" } });
    const must = Math.min(min, COPIES);
    const parts = Array.from({ length: max === Number.POSITIVE_INFINITY ? Math.max(0, must - 1) : must }, () => build(node));
    if (max === Number.POSITIVE_INFINITY) {
      const loop = build(node);
      link(loop, loop);
      parts.push(min === 0 ? optional(loop) : loop);
    } else if (max > min) {
      let tail = optional(build(node));
      for (let copy = 1; copy < Math.min(max - min, COPIES); copy += 1) tail = optional(then(build(node), tail));
      parts.push(tail);
    }
    return parts.reduce(then, nothing("none"));
  }

  function build(node: Node): Fragment {
    switch (node.kind) {
      case "letter":
        return letter(node.spelling);
      case "sequence":
        return node.parts.map(build).reduce(then, nothing("none"));
      case "choice":
        return either(node.parts.map(build));
      case "repeat":
        return repeat(node.of, node.min, node.max);
      case "start":
        return nothing(lines ? "other" : "none", true);
      case "end":
        return nothing(lines ? "other" : "end");
      case "boundary":
        return nothing("other");
      case "ahead": {
        // A lookahead is a branch that leads nowhere.
        const { first } = build(node.of);
        return { empty: { anchored: false, condition: "other" }, first, last: [] };
      }
      case "behind":
        if (isEndless(node.of)) beyond = true;
        return nothing("other");
      case "back":
        beyond = true;
        return nothing("other");
      default:
        return nothing("none");
    }
  }

  const whole = build(parsePattern(source, flags));
  for (const { state, anchored } of whole.first) follow[anchored || flags.includes("y") ? AFTER_LINE : ANYWHERE]!.add(state);
  if (lines) follow[ANYWHERE]!.add(AFTER_LINE);
  const { letters, takes } = classesOf(spellings, flags);
  takes[AFTER_LINE] = letters.map((one) => lines && /[\n\r\u2028\u2029]/.test(one));
  const certain = spellings.map(() => false);
  for (const { state, condition } of whole.last) {
    const goesOn = follow[state]!.has(state) && takes[state]!.every(Boolean);
    if (condition === "none" || (condition === "end" && goesOn)) certain[state] = true;
  }
  return {
    takes,
    follow,
    double: [...double.values()],
    certain,
    letters,
    beyond,
    starts: lines ? [ANYWHERE] : [ANYWHERE, AFTER_LINE],
  };
}

function isEndless(node: Node): boolean {
  if (node.kind === "repeat") return node.max === Number.POSITIVE_INFINITY || isEndless(node.of);
  if (node.kind === "sequence" || node.kind === "choice") return node.parts.some(isEndless);
  return (node.kind === "ahead" || node.kind === "behind") && isEndless(node.of);
}

/** Groups the letters that no state distinguishes. */
function classesOf(spellings: readonly string[], flags: string): { letters: string[]; takes: boolean[][] } {
  const own = flags.replace(/[gmy]/g, "");
  const whole = /[uv]/.test(flags);
  const tests = spellings.map((spelling) => new RegExp(`^${spelling}$`, own));
  const spelled = spellings.flatMap((spelling) => (spelling.length <= 2 ? [...spelling] : [...spelling.slice(1, -1)]));
  const classes = new Map<string, string>();
  for (const one of new Set([...SAMPLE, ...spelled])) {
    // Without the flag u, a pattern sees such a character as two halves.
    if (!whole && one.length > 1) continue;
    const key = tests.map((test) => (test.test(one) ? "1" : "0")).join("") + (/[\n\r\u2028\u2029]/.test(one) ? "n" : "");
    const before = classes.get(key);
    if (before === undefined || (/[^\x21-\x7e]/.test(before) && /[\x21-\x7e]/.test(one))) classes.set(key, one);
  }
  const letters = [...classes.values()];
  return { letters, takes: tests.map((test) => letters.map((one) => test.test(one))) };
}
