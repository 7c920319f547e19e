import { startsNothingElse } from "../../home/open-arguments.ts";
import type { ApprovalRule } from "../../home/safety-config.ts";
import { fits, isExact } from "../../lib/glob.ts";
import type { PlainCommand } from "../../shell/plain-line.ts";
import type { ShellLine } from "./shell-lines.ts";

/** What a rule is matched against. */
export interface Subject {
  tool: string;
  /** What it is really about: only this can be allowed. */
  names: readonly string[];
  /** A second thing that it is about, which must be allowed as well. */
  also?: readonly string[] | undefined;
  /** As the model spelled it: this too can be denied or asked about. */
  spelled: readonly string[];
  /** For a command line. */
  line?: ShellLine | undefined;
}

export interface Hit {
  rule: ApprovalRule;
  /** Its index in the list. */
  index: number;
  /** Whether it matches for certain; a line that cannot be parsed may only seem to contain a command. */
  isCertain: boolean;
}

/** How a rule matches, if it does. */
type Fit = "certain" | "suspected" | undefined;

/** The first rule that matches; a later denial that matches for certain precedes one that only may match. */
export function ruleFor(subject: Subject, rules: readonly ApprovalRule[]): Hit | undefined {
  const judge = subject.line ? judgeLine(subject.line) : (rule: ApprovalRule) => fitsPlainly(rule, subject);
  let suspected: Hit | undefined;
  for (const [index, rule] of rules.entries()) {
    const fit = fits(rule.tool, subject.tool) ? judge(rule) : undefined;
    if (fit === "suspected") suspected ??= { rule, index, isCertain: false };
    if (fit === "certain" && (!suspected || rule.then === "deny")) return { rule, index, isCertain: true };
  }
  return suspected;
}

/** Whether these rules, which all allow, cover the whole subject. */
export function isAllowedBy(subject: Subject, kept: readonly Pick<ApprovalRule, "match">[]): boolean {
  // biome-ignore lint/suspicious/noThenProperty: the name of the key in config.json
  const rules = kept.map(({ match }): ApprovalRule => ({ tool: subject.tool, match, then: "allow" }));
  return ruleFor(subject, rules) !== undefined;
}

/** Why rules that would allow a command line by its words do not; undefined if there are none. */
export function whyNotAllowed({ tool, line }: Subject, rules: readonly Pick<ApprovalRule, "tool" | "match" | "then">[]) {
  const words = line?.plain?.find((each) =>
    rules.some(
      ({ tool: of, match, then }) => then === "allow" && fits(of, tool) && fits(match, each.text) && !isAllowedPart(match, each),
    ),
  )?.words;
  return (
    words &&
    `a rule with "*" does not count for ${words[0]} here, because it may start other programs; spell out the whole command`
  );
}

function fitsPlainly({ match, then }: ApprovalRule, { names, also, spelled }: Subject): Fit {
  const isOneOf = (texts: readonly string[]) => texts.some((text) => fits(match, text));
  const isHit =
    then === "allow" ? isOneOf(names) && (also === undefined || isOneOf(also)) : isOneOf([...names, ...(also ?? []), ...spelled]);
  return isHit ? "certain" : undefined;
}

/**
 * A line is allowed if it is plain and every command in it is allowed, by one rule or several, or if a rule spells out the
 * whole line. To deny it or ask about it, a single command is enough, or that the line is too long to be read to its end.
 */
function judgeLine({ whole, plain, spellings, suspected, isWhole }: ShellLine): (rule: ApprovalRule) => Fit {
  const open = new Map(spellings.entries());
  return ({ match, then }) => {
    if (then !== "allow") {
      const isNamed = open.size === spellings.length && fits(match, whole);
      if (isNamed || [...open.values()].some((each) => each.some((text) => fits(match, text)))) return "certain";
      return !isWhole || suspected.some((text) => fits(match, text)) ? "suspected" : undefined;
    }
    // "*" allows everything; any other star stands for arguments, never for further commands.
    if (match === "*" || (isExact(match) && fits(match, whole))) return "certain";
    if (!plain) return undefined;
    for (const index of open.keys()) if (isAllowedPart(match, plain[index]!)) open.delete(index);
    return open.size === 0 ? "certain" : undefined;
  };
}

/** If a rule leaves arguments open, or the command reads from a pipe, only commands that start no other program are allowed. */
function isAllowedPart(match: string, { text, words, isPiped }: PlainCommand): boolean {
  return fits(match, text) && ((isExact(match) && !isPiped) || startsNothingElse(words));
}
