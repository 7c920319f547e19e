import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { messageOf, usageError } from "../../lib/errors.ts";
import { packageRoot } from "../../lib/package-root.ts";

const Pattern = z.string().refine(isPattern, "is not a regular expression");
const Call = z.strictObject({
  call: z.string(),
  args: z.record(z.string(), z.unknown()).default({}),
  /** A pattern that the result has to match. If it does not, the answer quotes the result and the scene ends. */
  expect: Pattern.optional(),
  /** Named parts of the result, for later steps. */
  keep: z.record(z.string().regex(/^[a-z]+$/), Pattern).default({}),
  /** Played only if this value was stored. */
  if: z.string().optional(),
});
const Say = z.strictObject({ say: z.string(), if: z.string().optional() });
const Step = z.union([Call, Say]);
const Rule = z.strictObject({
  when: z.union([Pattern, z.array(Pattern).min(1)]),
  system: Pattern.optional(),
  steps: z.array(Step).min(1),
});
const Rules = z.strictObject({ rules: z.array(Rule).min(1) });
export type Step = z.infer<typeof Step>;
export type Rule = z.infer<typeof Rule>;

/** Loads the user's own rules from the home folder, or else those that ship with IO. */
export function loadRules(home: string): Rule[] {
  const own = join(home, "rehearsal.yaml");
  const file = existsSync(own) ? own : join(packageRoot, "rehearsal", "rules.yaml");
  try {
    return Rules.parse(parse(readFileSync(file, "utf8"))).rules;
  } catch (error) {
    throw usageError(`${file}: ${messageOf(error)}`, error);
  }
}

/** Ignores case; a dot also matches a newline. */
export function matches(pattern: string, text: string): RegExpExecArray | null {
  return new RegExp(pattern, "is").exec(text);
}

function isPattern(pattern: string): boolean {
  try {
    matches(pattern, "");
    return true;
  } catch {
    // Reported to the author of the rule.
    return false;
  }
}
