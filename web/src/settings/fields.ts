export interface Schema {
  type?: string;
  description?: string;
  enum?: unknown[];
  default?: unknown;
  items?: Schema;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  /** A secret: the daemon only reports whether it is set. */
  writeOnly?: boolean;
}
/** Fields of a single value. `maybe` is a flag that may also be unset; `command` is a line or a list of words. */
type Simple = "flag" | "maybe" | "choice" | "number" | "text" | "lines" | "command" | "json" | "secret";
/**
 * Fields of several values: `parts` of an object, `rows` of a list of objects, `entries` of objects by name, `pairs` of texts
 * by name.
 */
type Structured = "parts" | "rows" | "entries" | "pairs";
export type Kind = Simple | Structured;
export interface Field {
  key: string;
  kind: Kind;
  choices: string[];
  /** One sentence about what the setting does. */
  says: string;
  /** The fields of the object, or of each row. */
  parts: Field[];
  isSecret: boolean;
  default?: unknown;
}

/** The config's keys as form fields, each of the kind that its schema requires. */
export const fieldsOf = ({ properties = {} }: Pick<Schema, "properties">): Field[] =>
  Object.entries(properties).map(([key, schema]) => ({
    ...{ key, kind: kindOf(schema), parts: fieldsOf(itemOf(schema)), choices: (schema.enum ?? []).map(String) },
    ...{ says: sentence(schema.description ?? ""), isSecret: schema.writeOnly === true, default: schema.default },
  }));

const namedBy = ({ additionalProperties: named }: Schema) => (typeof named === "object" ? named : undefined);
const itemOf = (schema: Schema): Schema => (schema.properties ? schema : (schema.items ?? namedBy(schema) ?? {}));

function kindOf(schema: Schema): Kind {
  const { type, enum: choices, items, properties, anyOf } = schema;
  if (choices) return "choice";
  if (type === "boolean") return schema.default === undefined ? "maybe" : "flag";
  if (type === "integer" || type === "number") return "number";
  if (type === "string") return schema.writeOnly ? "secret" : "text";
  if (type === "array" && items?.type === "string") return "lines";
  if (type === "array" && items?.properties) return "rows";
  if (properties) return "parts";
  if (namedBy(schema)?.properties) return "entries";
  if (namedBy(schema)?.type === "string") return "pairs";
  return anyOf?.map((each) => each.type).join() === "string,array" ? "command" : "json";
}

const sentence = (words: string) => (words === "" ? "" : `${words[0]?.toUpperCase()}${words.slice(1)}.`);

const STRUCTURED: ReadonlySet<Kind> = new Set<Kind>(["parts", "rows", "entries", "pairs"]);
export const isStructured = ({ kind }: Field): boolean => STRUCTURED.has(kind);

/** Whether the field contains a secret. */
export const holdsSecret = ({ isSecret, parts }: Field): boolean => isSecret || parts.some(holdsSecret);

/** Whether the value stands for a stored secret. */
export const isSet = (value: unknown): boolean =>
  typeof value === "object" && value !== null && (value as { set?: unknown }).set === true;

/** Formats a value as its field's text. */
export function textOf(kind: Kind, value: unknown): string {
  if (kind === "secret") return typeof value === "string" ? value : "";
  if (value === undefined || value === null) return "";
  if (kind === "maybe") return value === true ? "yes" : "no";
  if (Array.isArray(value) && kind === "command" && value.length === 1 && /\s/.test(value[0])) return JSON.stringify(value[0]);
  if (Array.isArray(value) && kind !== "json") return value.join("\n");
  return typeof value === "object" ? JSON.stringify(value, null, 2) : String(value);
}

/**
 * Parses a field's text into a config value; undefined removes it. A text that does not fit is returned unchanged, so that the
 * daemon refuses it by name.
 */
export function readText(kind: Kind, typed: string): unknown {
  const text = typed.trim();
  if (text === "") return undefined;
  if (kind === "maybe") return text === "yes";
  if (kind === "number") return Number.isNaN(Number(text)) ? text : Number(text);
  if (kind === "json") return parsed(text) ?? text;
  const lines = text.split("\n").map((line) => line.trim());
  if (kind === "lines") return lines;
  return kind === "command" && lines.length > 1 ? lines : text;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The keys whose values differ between two objects, with the new value, or null if it is gone. */
export function changesBetween(before: Record<string, unknown>, after: Record<string, unknown>): Record<string, unknown> {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  const differ = [...keys].filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]));
  return Object.fromEntries(differ.map((key) => [key, after[key] ?? null]));
}
