import { isRecord } from "../../lib/is-record.ts";

/** The keys and indexes that lead to a place in the file. */
export type Path = readonly (string | number)[];
/** Reports a problem with a place, or with one of its keys. */
export type Report = (path: Path, message: string, key?: string) => void;

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
export function lineOf(lines: ReadonlyMap<string, number>, path: Path): number {
  for (let length = path.length; length > 0; length -= 1) {
    const line = lines.get(JSON.stringify(path.slice(0, length).map(String)));
    if (line !== undefined) return line;
  }
  return lines.get("[]") ?? 1;
}
