/** A pattern as a tree. A letter class keeps its own spelling, because the language itself knows what it contains. */
export type Node =
  | { kind: "letter"; spelling: string }
  | { kind: "empty" }
  | { kind: "sequence"; parts: Node[] }
  | { kind: "choice"; parts: Node[] }
  | { kind: "repeat"; of: Node; min: number; max: number }
  | { kind: "start" | "end" | "boundary" }
  | { kind: "ahead" | "behind"; of: Node }
  | { kind: "back" };

/** Parses a pattern that the language has already accepted. */
export function parsePattern(source: string, flags: string): Node {
  const unicode = /[uv]/.test(flags);
  let at = 0;
  const looking = (text: string) => source.startsWith(text, at);
  const take = (text: string) => {
    if (!looking(text)) return false;
    at += text.length;
    return true;
  };

  function choice(): Node {
    const parts = [sequence()];
    while (take("|")) parts.push(sequence());
    return parts.length === 1 ? parts[0]! : { kind: "choice", parts };
  }

  function sequence(): Node {
    const parts: Node[] = [];
    while (at < source.length && !looking("|") && !looking(")")) parts.push(quantified(item()));
    return parts.length === 1 ? parts[0]! : { kind: "sequence", parts };
  }

  function quantified(of: Node): Node {
    const found = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(source.slice(at, at + 20));
    if (!found) return of;
    at += found[0].length;
    if (found[0][0] === "*") return { kind: "repeat", of, min: 0, max: Number.POSITIVE_INFINITY };
    if (found[0][0] === "+") return { kind: "repeat", of, min: 1, max: Number.POSITIVE_INFINITY };
    if (found[0][0] === "?") return { kind: "repeat", of, min: 0, max: 1 };
    const min = Number(found[1]);
    const max = found[2] === "" ? min : found[3] === "" ? Number.POSITIVE_INFINITY : Number(found[3]);
    return { kind: "repeat", of, min, max };
  }

  function item(): Node {
    if (take("^")) return { kind: "start" };
    if (take("$")) return { kind: "end" };
    if (take("(?:")) return closed(choice());
    if (take("(?=") || take("(?!")) return { kind: "ahead", of: closed(choice()) };
    if (take("(?<=") || take("(?<!")) return { kind: "behind", of: closed(choice()) };
    if (take("(?<")) {
      at = source.indexOf(">", at) + 1;
      return closed(choice());
    }
    if (take("(")) return closed(choice());
    if (looking("[")) return { kind: "letter", spelling: klass() };
    if (looking("\\")) return escaped();
    const letter = unicode ? String.fromCodePoint(source.codePointAt(at)!) : source[at]!;
    at += letter.length;
    return { kind: "letter", spelling: letter === "/" ? "\\/" : letter };
  }

  function closed(node: Node): Node {
    if (!take(")")) throw new Error(`no ) at ${at} in ${source}`);
    return node;
  }

  function klass(): string {
    const begin = at;
    at += 1;
    while (!looking("]")) at += looking("\\") ? 2 : 1;
    at += 1;
    return source.slice(begin, at);
  }

  function escaped(): Node {
    if (take("\\b") || take("\\B")) return { kind: "boundary" };
    const back = /^\\(?:[1-9]\d*|k<[^>]*>)/.exec(source.slice(at, at + 80));
    if (back) {
      at += back[0].length;
      return { kind: "back" };
    }
    const found = /^\\(?:u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|c[A-Za-z]|[pP]\{[^}]*\}|[\s\S])/u.exec(
      source.slice(at, at + 80),
    )!;
    at += found[0].length;
    return { kind: "letter", spelling: found[0] };
  }

  const tree = choice();
  if (at !== source.length) throw new Error(`not read to its end: ${source}`);
  return tree;
}
