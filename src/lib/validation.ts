import type { z } from "zod";

type Issue = z.core.$ZodIssue;

/** Limits for error messages: how many problems they list, and how much of a foreign name they show. */
const MAX_FINDINGS = 10;
const LONG_NAME = 100;

/** The first problems, and how many more there are. */
export function someOf<T>(findings: readonly T[]): { shown: readonly T[]; more: string | undefined } {
  const left = findings.length - MAX_FINDINGS;
  return { shown: findings.slice(0, MAX_FINDINGS), more: left > 0 ? `and ${left} more` : undefined };
}

/** Describes what is wrong with a value, field by field. */
export function explainIssues(error: { issues: readonly Issue[] }): string {
  const { shown, more } = someOf(error.issues);
  const found = shown.flatMap((issue) => {
    const name = shortName(issue.path.map(String).join("."));
    if (issue.code !== "unrecognized_keys") return [name === "" ? ruleOf(issue) : `${name}: ${ruleOf(issue)}`];
    const keys = someOf(issue.keys);
    const lines = keys.shown.map((key) => `${name === "" ? "" : `${name}.`}${shortName(key)}: there is no such field`);
    return keys.more ? [...lines, keys.more] : lines;
  });
  return (more ? [...found, more] : found).join("; ");
}

/** Shortens a foreign name so that it fits into a sentence. */
export function shortName(name: string): string {
  return name.length <= LONG_NAME ? name : `${name.slice(0, LONG_NAME)}…`;
}

/** The broken rule: "must be at most 200". A rule with its own message keeps it. */
export function ruleOf(issue: Issue): string {
  if (!isValidatorSpeak(issue.message)) return issue.message;
  switch (issue.code) {
    case "invalid_type":
      return isMissing(issue) ? "is missing" : `must be ${KINDS[issue.expected] ?? issue.expected}`;
    case "too_big":
      return limit(issue.origin, issue.inclusive === false ? "less than" : "at most", Number(issue.maximum));
    case "too_small":
      return limit(issue.origin, issue.inclusive === false ? "more than" : "at least", Number(issue.minimum));
    case "invalid_value":
      return oneOf(issue.values);
    case "invalid_union":
      return "options" in issue && Array.isArray(issue.options)
        ? oneOf(issue.options)
        : [...new Set(issue.errors.flatMap(([first]) => (first ? [ruleOf(first)] : [])))].join(", or ") || "is not allowed";
    case "invalid_format":
      return FORMATS[issue.format] ?? "is not written in the form that is wanted";
    case "invalid_key":
      return "has a name that is not allowed";
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "unrecognized_keys":
      return `has no ${someOf(issue.keys)
        .shown.map((key) => `"${shortName(key)}"`)
        .join(", ")}`;
    default:
      return "is not allowed";
  }
}

/** The broken rule as a sentence: "it must be at most 200". */
export function sentenceOf(issue: Issue): string {
  const rule = ruleOf(issue);
  return isValidatorSpeak(issue.message) ? `it ${rule}` : rule;
}

const KINDS: Record<string, string> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
  null: "empty",
};

const FORMATS: Record<string, string> = {
  url: 'must be an address such as "https://example.com"',
  email: 'must be an e-mail address such as "me@example.com"',
  datetime: 'must be a time such as "2026-01-31T12:00:00Z"',
  date: 'must be a date such as "2026-01-31"',
};

function limit(origin: string, bound: string, count: number): string {
  if (origin === "number" || origin === "int") return `must be ${bound} ${count}`;
  if (bound === "at least" && count === 1) return "must not be empty";
  return `must have ${bound} ${count} ${origin === "string" ? "characters" : "entries"}`;
}

function oneOf(values: readonly unknown[]): string {
  const shown = values.map((value) => JSON.stringify(value));
  return shown.length === 1 ? `must be ${shown[0]}` : `must be one of ${shown.join(", ")}`;
}

function isMissing(issue: Issue): boolean {
  return issue.message.endsWith("received undefined");
}

/** Messages of the validator itself, as opposed to those written in a schema. */
function isValidatorSpeak(message: string): boolean {
  return /^(?:Invalid (?:input|option|string|number|URL|key|element|discriminator|ISO|email|\S+$)|Too (?:big|small)|Unrecognized key)/.test(
    message,
  );
}
