/** Readers of foreign fields: a value of the wrong type reads as absent. */

export function numberIn(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

export function recordIn(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

export function listIn(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Text, given as a string or in parts. */
export function textOfParts(content: unknown): string {
  if (typeof content === "string") return content;
  return listIn(content)
    .map((part) => textIn(recordIn(part).text))
    .join("");
}
