import { recordIn, textIn } from "./fields.ts";
import { createLetters, type Letters } from "./stream.ts";

/** A tool call that arrives in pieces. */
interface Call {
  index: number;
  id: string;
  /** The provider's id for it, if any. */
  given: string;
  name: string;
  args: string;
  letters: Letters;
}

/** One piece of one call. */
interface Piece {
  place: number | undefined;
  given: string;
  name: string;
  args: string;
  /** Its position among several in one event. */
  beside: number | undefined;
}

/**
 * Separates the calls of an answer and gives each its own index and id: some providers send no id, an empty one,
 * or the same one twice; no index, or index 0 for all of them.
 */
export function createCalls() {
  const calls: Call[] = [];
  const places = new Map<number, Call>();

  /** The call that a piece belongs to, if it has begun. */
  const find = ({ place, given, name, args, beside }: Piece): Call | undefined => {
    if (place !== undefined) {
      const there = places.get(place);
      const isAnother = name && there?.name && (given ? given !== there.given : args !== "" && isWhole(there.args));
      return isAnother ? undefined : there;
    }
    const known = given ? calls.findLast((call) => call.given === given) : undefined;
    if (known) return name && args !== "" && isWhole(known.args) ? undefined : known;
    const latest = beside === undefined ? calls.at(-1) : calls[beside];
    return given || (name && latest?.name) ? undefined : latest;
  };

  const told = (each: unknown, beside: number | undefined): object => {
    const raw = recordIn(each);
    const { name: said, arguments: sent, ...more } = recordIn(raw.function);
    const place = typeof raw.index === "number" && Number.isInteger(raw.index) && raw.index >= 0 ? raw.index : undefined;
    const given = textIn(raw.id);
    const name = textIn(said);
    // Some send the arguments as an object instead of text.
    const args = typeof sent === "object" && sent !== null ? JSON.stringify(sent) : textIn(sent);
    const known = find({ place, given, name, args, beside });
    const call = known ?? begin(given);
    if (place !== undefined) places.set(place, call);
    const isNew = name !== call.name;
    if (isNew) call.name += name;
    call.args += args;
    return {
      ...raw,
      ...(!known && { type: "function" }),
      ...((!known || raw.id !== undefined) && { id: call.id }),
      index: call.index,
      function: { ...more, ...(name && isNew && { name }), arguments: call.letters.push(args) },
    };
  };

  const begin = (given: string): Call => {
    const isFree = given !== "" && !calls.some(({ id }) => id === given);
    const id = isFree ? given : `call_${crypto.randomUUID().replaceAll("-", "").slice(0, 24)}`;
    const call = { index: calls.length, id, given, name: "", args: "", letters: createLetters() };
    calls.push(call);
    return call;
  };

  return {
    count: () => calls.length,
    /** The pieces of one event in the runtime's form. */
    take: (pieces: readonly unknown[]): object[] =>
      pieces.map((each, position) => told(each, pieces.length > 1 ? position : undefined)),
    /** Unpaired surrogates at the end of arguments, whose other halves never came. */
    rest: (): object[] =>
      calls.flatMap(({ index, letters }) => {
        const left = letters.rest();
        return left ? [{ index, function: { arguments: left } }] : [];
      }),
  };
}

function isWhole(args: string): boolean {
  try {
    return typeof JSON.parse(args) === "object";
  } catch {
    return false;
  }
}
