import type { z } from "zod";

type Issue = z.core.$ZodIssue;

/** What is wrong with a value, field by field, in words for a person. */
export function explainIssues(error: { issues: readonly Issue[] }): string {
  return error.issues
    .flatMap((issue) => {
      const name = issue.path.map(String).join(".");
      if (issue.code === "unrecognized_keys")
        return issue.keys.map((key) => `${name === "" ? key : `${name}.${key}`}: there is no such field`);
      return [name === "" ? ruleOf(issue) : `${name}: ${ruleOf(issue)}`];
    })
    .join("; ");
}

/** The rule that was broken: "must be at most 200". A rule that came with words of its own keeps them. */
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
      return `has no ${issue.keys.map((key) => `"${key}"`).join(", ")}`;
    default:
      return "is not allowed";
  }
}

/** The rule as a sentence about the value: "it must be at most 200". */
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

/** The validator's own words, as against those that a schema was given. */
function isValidatorSpeak(message: string): boolean {
  return /^(?:Invalid (?:input|option|string|number|URL|key|element|discriminator|ISO|email|\S+$)|Too (?:big|small)|Unrecognized key)/.test(
    message,
  );
}
