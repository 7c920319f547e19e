import { valueTrouble } from "../lib/input-budget.ts";
import { isRecord } from "../lib/is-record.ts";
import { quoted } from "../lib/quoted.ts";

export type JsonSchema = Record<string, unknown>;

/** A larger schema is not shown to a model. */
const MOST_CHARACTERS = 20_000;
const BUDGET = { depth: 24, entries: 2_000 };
/** The most comparisons of a value with a schema, which limits the cost of recursive schemas. */
const MOST_STEPS = 20_000;
const DEEPEST = 64;
const MOST_FINDINGS = 5;

/** Why a tool with this schema cannot be offered; undefined if it can. */
export function schemaTrouble(schema: unknown): string | undefined {
  if (!isRecord(schema)) return "has no input schema";
  if (schema.type !== "object") return "takes something other than an object";
  const excess = valueTrouble(schema, BUDGET);
  if (excess !== undefined) return `has a schema that ${excess}`;
  return JSON.stringify(schema).length > MOST_CHARACTERS ? "has a schema that is too long" : undefined;
}

/**
 * Describes in sentences what is wrong with arguments. It ignores patterns and formats, because a server's pattern could take for
 * ever; keywords that it does not know are left to the server.
 */
export function findMismatches(schema: JsonSchema, args: unknown): string[] {
  const findings: string[] = [];
  const check = createCheck(schema);
  check(schema, args, "", findings);
  return findings.slice(0, MOST_FINDINGS);
}

function createCheck(root: JsonSchema) {
  let steps = 0;
  let depth = 0;
  /** Whether the value fits; adds what does not to the findings. Beyond the limits everything fits. */
  function check(schema: unknown, value: unknown, path: string, findings: string[]): boolean {
    steps += 1;
    if (depth > DEEPEST) return true;
    depth += 1;
    const fits = checkParts(schema, value, path, findings);
    depth -= 1;
    return fits;
  }

  function checkParts(schema: unknown, value: unknown, path: string, findings: string[]): boolean {
    if (steps > MOST_STEPS || findings.length >= MOST_FINDINGS || schema === true) return true;
    const before = findings.length;
    const say = (text: string) => void findings.push(`${path === "" ? "The arguments" : path}: ${text}.`);
    if (schema === false) say("is not allowed");
    if (!isRecord(schema)) return findings.length === before;
    const target = typeof schema.$ref === "string" ? resolve(root, schema.$ref) : undefined;
    if (target !== undefined) check(target, value, path, findings);
    if (schema.type !== undefined && !isOfType(schema.type, value)) {
      say(`found ${typeOf(value)}; allowed: ${[schema.type].flat().map(String).join(" or ")}`);
      return false;
    }
    steps += listOf(schema.enum).length + listOf(schema.required).length;
    if (Array.isArray(schema.enum) && !isOneOf(schema.enum, value))
      say(`found ${shown(value)}; allowed: one of ${schema.enum.slice(0, 20).map(shown).join(", ")}`);
    if (schema.const !== undefined && !isOneOf([schema.const], value)) say(`allowed: only ${shown(schema.const)}`);
    checkLimits(schema, value, say);
    if (isRecord(value)) checkObject(schema, value, path, findings);
    if (Array.isArray(value) && schema.items !== undefined)
      for (const [index, each] of value.entries()) check(schema.items, each, `${path}[${index}]`, findings);
    for (const part of listOf(schema.allOf)) check(part, value, path, findings);
    for (const parts of [listOf(schema.anyOf), listOf(schema.oneOf)])
      if (parts.length > 0 && !parts.some((part) => check(part, value, path, []))) say("fits none of the allowed forms");
    return findings.length === before;
  }

  function checkObject(schema: JsonSchema, value: JsonSchema, path: string, findings: string[]): void {
    const properties = isRecord(schema.properties) ? schema.properties : {};
    const at = (name: string) => (path === "" ? shortName(name) : `${path}.${shortName(name)}`);
    for (const name of listOf(schema.required))
      if (typeof name === "string" && !Object.hasOwn(value, name)) findings.push(`${at(name)}: is missing.`);
    for (const [name, each] of Object.entries(value)) {
      if (findings.length >= MOST_FINDINGS) return;
      if (Object.hasOwn(properties, name)) check(properties[name], each, at(name), findings);
      else if (schema.additionalProperties === false && schema.patternProperties === undefined) {
        const known = Object.keys(properties).slice(0, 20).map(shortName).join(", ");
        findings.push(`${at(name)}: is not an argument of it${known === "" ? "" : `; allowed: ${known}`}.`);
      } else if (isRecord(schema.additionalProperties)) check(schema.additionalProperties, each, at(name), findings);
    }
  }
  return check;
}

function checkLimits(schema: JsonSchema, value: unknown, say: (text: string) => void): void {
  const size = typeof value === "string" || Array.isArray(value) ? value.length : undefined;
  const [least, most] = typeof value === "string" ? ["minLength", "maxLength"] : ["minItems", "maxItems"];
  if (size !== undefined && isUnder(size, schema[least!])) say(`is too short; allowed: at least ${schema[least!]}`);
  if (size !== undefined && isOver(size, schema[most!])) say(`is too long; allowed: at most ${schema[most!]}`);
  if (typeof value !== "number") return;
  if (isUnder(value, schema.minimum)) say(`found ${value}; allowed: at least ${schema.minimum}`);
  if (isOver(value, schema.maximum)) say(`found ${value}; allowed: at most ${schema.maximum}`);
}

const isUnder = (value: number, limit: unknown) => typeof limit === "number" && value < limit;
const isOver = (value: number, limit: unknown) => typeof limit === "number" && value > limit;

/** The part of the schema that a reference such as `#/$defs/point` names. */
function resolve(root: JsonSchema, reference: string): unknown {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  const parts = reference.slice(2).split("/");
  return parts.reduce<unknown>((at, part) => {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    return isRecord(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }, root);
}

function isOfType(type: unknown, value: unknown): boolean {
  const types: unknown[] = [type].flat();
  const found = typeOf(value);
  return types.some((each) => each === found || (each === "number" && found === "integer") || !KNOWN.includes(String(each)));
}

const KNOWN = ["object", "array", "string", "number", "integer", "boolean", "null"];

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

function isOneOf(allowed: readonly unknown[], value: unknown): boolean {
  if (typeof value !== "object" || value === null) return allowed.includes(value);
  const text = JSON.stringify(value);
  return allowed.some((each) => typeof each === "object" && JSON.stringify(each) === text);
}

const shown = (value: unknown) =>
  typeof value === "string" ? quoted(value, 60) : (JSON.stringify(value) ?? "nothing").slice(0, 60);
const shortName = (name: string) => (/^[\w.-]{1,60}$/.test(name) ? name : quoted(name, 60));
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
