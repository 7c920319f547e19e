import { z } from "zod";
import { nearest } from "../home/config.ts";
import { sentenceOf, someOf } from "../lib/validation.ts";

/** The JSON Schema that a model is shown: what it needs to fill in the arguments, and nothing else. */
export function parametersOf(schema: z.ZodObject): Record<string, unknown> {
  const trimmed = trim(z.toJSONSchema(schema, { io: "input" }));
  return isRecord(trimmed) ? { ...trimmed, properties: trimmed.properties ?? {} } : {};
}

/** Explains what is wrong with a call's arguments, in sentences that the model can act on. */
export function explainArguments(tool: string, error: z.ZodError, schema: z.ZodObject, args: unknown): string {
  const { shown, more } = someOf(error.issues);
  const findings = shown.map((issue) => explain(issue, schema, args));
  if (more) findings.push(`(${more})`);
  return `${tool} was not run, its arguments are not right. ${findings.join(" ")} Call it again with this mended.`;
}

function explain(issue: z.core.$ZodIssue, schema: z.ZodObject, args: unknown): string {
  const name = issue.path.map(String).join(".");
  if (issue.code === "unrecognized_keys") {
    const allowed = issue.path.length === 0 ? Object.keys(schema.shape) : [];
    const { shown, more } = someOf(issue.keys);
    const hints = shown.map((key) => {
      const near = nearest(key, allowed);
      return `"${show(key, 40)}" is not an argument of it${near ? `, did you mean "${near}"?` : "."}`;
    });
    if (more) hints.push(`(${more})`);
    const list = allowed.length > 0 ? ` Allowed: ${allowed.join(", ")}.` : "";
    return `${hints.join(" ")}${issue.path.length === 0 && allowed.length === 0 ? " It takes no arguments." : list}`;
  }
  const found = issue.path.reduce<unknown>((value, part) => (isRecord(value) ? value[String(part)] : undefined), args);
  const wanted =
    issue.code === "invalid_value"
      ? `one of ${issue.values.map((value) => JSON.stringify(value)).join(", ")}`
      : issue.code === "invalid_type" && issue.expected === "nonoptional"
        ? "any value"
        : issue.code === "invalid_type"
          ? `${/^[aeiou]/.test(issue.expected) ? "an" : "a"} ${issue.expected}`
          : undefined;
  const rule = wanted === undefined ? sentenceOf(issue).replace(/^it must be /, "allowed: ") : `allowed: ${wanted}`;
  if (name === "") return `Found ${show(JSON.stringify(args) ?? "nothing", 80)}; ${rule}.`;
  if (found === undefined) return `${name}: is missing; ${rule}.`;
  return `${name}: found ${show(JSON.stringify(found) ?? "nothing", 80)}; ${rule}.`;
}

function show(text: string, limit: number): string {
  return text.length > limit ? `${text.slice(0, limit)}…` : text;
}

/** Limits that few calls reach; a call that does is told. */
const LIMITS = new Set(["minLength", "maxLength", "minItems", "maxItems"]);

/** Removes what a validator needs and a model does not. */
function trim(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(trim);
  if (!isRecord(node)) return node;
  const kept = Object.entries(node).filter(
    ([key, value]) =>
      !(key === "$schema" && typeof value === "string") &&
      !(key === "additionalProperties" && (typeof value === "boolean" || isEmpty(value))) &&
      !(typeof value === "number" && (LIMITS.has(key) || Math.abs(value) === Number.MAX_SAFE_INTEGER)),
  );
  return Object.fromEntries(kept.map(([key, value]) => [key, trim(value)]));
}

function isEmpty(value: unknown): boolean {
  return isRecord(value) && Object.keys(value).length === 0;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
