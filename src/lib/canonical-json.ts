import { isRecord } from "./is-record.ts";

/** JSON with sorted keys, so that equal values give equal text; undefined if the value has no JSON form. */
export function canonicalJson(value: unknown): string | undefined {
  return JSON.stringify(value, (_key, part: unknown) =>
    isRecord(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
}
