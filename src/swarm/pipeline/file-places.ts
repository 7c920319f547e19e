import { isMap, isNode, isScalar, type LineCounter } from "yaml";

/** The keys and indexes that lead to a place in the file. */
export type Path = readonly (string | number)[];
/** Reports a problem with a place, or with one of its keys. */
export type Report = (path: Path, message: string, key?: string) => void;

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function valueAt(raw: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, part) => {
    if (Array.isArray(value)) return typeof part === "number" ? value[part] : undefined;
    return isRecord(value) && Object.hasOwn(value, part) ? value[part] : undefined;
  }, raw);
}

/** A place as people write it, such as `pipeline[2].reviews[0].agent`. */
export function spell(path: Path): string {
  return (
    path.map((part, index) => (typeof part === "number" ? `[${part}]` : index === 0 ? part : `.${part}`)).join("") || "(file)"
  );
}

/** The line of a place; if the place is missing, the line of what should hold it. */
export function lineOf(root: unknown, counter: LineCounter, path: Path): number {
  let node: unknown = root;
  let offset = isNode(root) ? (root.range?.[0] ?? 0) : 0;
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(part));
      if (!pair) break;
      if (isNode(pair.key)) offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (typeof part === "number" && isNode(node) && "items" in node && Array.isArray(node.items)) {
      node = node.items[part];
      if (isNode(node)) offset = node.range?.[0] ?? offset;
    } else break;
  }
  return counter.linePos(offset).line;
}
