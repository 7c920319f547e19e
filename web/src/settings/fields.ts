export interface Schema {
  type?: string;
  description?: string;
  enum?: unknown[];
  default?: unknown;
  items?: Schema;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  minimum?: number;
  maximum?: number;
}
export type Kind = "flag" | "choice" | "number" | "text" | "lines" | "json" | "secret";
export interface Field {
  key: string;
  kind: Kind;
  choices: string[];
  /** One sentence about what it does. */
  says: string;
  /** What it consists of, where that is known. */
  parts: Field[];
}

/** The name of something that nobody should see: what names a variable or a file holds no secret itself. */
const SECRET = /(?:key|token|secret|password)$/i;

/**
 * The keys of the config as fields of a form, each of the kind that its schema asks for. A text whose value the daemon does not
 * tell, but only whether there is one, is a secret.
 */
export function fieldsOf(schema: { properties?: Record<string, Schema> }, values: Record<string, unknown>): Field[] {
  return Object.entries(schema.properties ?? {}).map(([key, given]) => ({
    key,
    kind: given.type === "string" && typeof values[key] === "object" ? "secret" : kindOf(given),
    parts: Object.entries(given.properties ?? {}).map(([name, part]) => partOf(name, part)),
    choices: (given.enum ?? []).map(String),
    says: sentence(given.description ?? ""),
  }));
}

function partOf(name: string, part: Schema): Field {
  const kind = kindOf(part);
  return {
    ...{ key: name, kind: kind === "text" && SECRET.test(name) ? "secret" : kind, parts: [] },
    ...{ choices: (part.enum ?? []).map(String), says: sentence(part.description ?? "") },
  };
}

function kindOf({ type, enum: choices, items }: Schema): Kind {
  if (choices) return "choice";
  if (type === "boolean") return "flag";
  if (type === "integer" || type === "number") return "number";
  if (type === "string") return "text";
  return type === "array" && items?.type === "string" ? "lines" : "json";
}

const sentence = (words: string) => (words === "" ? "" : `${words[0]?.toUpperCase()}${words.slice(1)}.`);

/** A value as it stands in its field. */
export function toField(kind: Kind, value: unknown): string | boolean {
  if (kind === "flag") return value === true;
  if (kind === "secret" || value === undefined || value === null) return "";
  if (kind === "lines") return (value as string[]).join("\n");
  return kind === "json" ? JSON.stringify(value, null, 2) : String(value);
}

/** What a field says, for the config; undefined takes the key out. Throws on JSON that is none. */
export function fromField(kind: Kind, said: string | boolean): unknown {
  if (typeof said === "boolean") return said;
  const text = said.trim();
  if (kind === "lines") return text === "" ? [] : text.split("\n").map((line) => line.trim());
  if (text === "") return null;
  // What is no number is sent as it is: the daemon says best what it wants.
  if (kind === "number") return Number.isNaN(Number(text)) ? text : Number(text);
  return kind === "json" ? (JSON.parse(text) as unknown) : text;
}

/** The keys of two objects whose values differ, with the new value, or null where it is gone. */
export function changesBetween(before: Record<string, unknown>, after: Record<string, unknown>): Record<string, unknown> {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  const differ = [...keys].filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]));
  return Object.fromEntries(differ.map((key) => [key, after[key] ?? null]));
}
