import { fits, isExact } from "../../lib/glob.ts";
import type { ApprovalRule } from "../../lib/safety-config.ts";
import type { ShellLine, SimpleCommand } from "./shell-lines.ts";

/** What a rule is held against. */
export interface Subject {
  tool: string;
  /** What it really is about: only this can be allowed. */
  names: readonly string[];
  /** As the model spelled it: this too can be refused or asked about. */
  spelled: readonly string[];
  /** For a command line. */
  line?: ShellLine | undefined;
}

/** The first rule that fits, with its place in the list. */
export function ruleFor(subject: Subject, rules: readonly ApprovalRule[]): { rule: ApprovalRule; index: number } | undefined {
  const judge = subject.line ? judgeLine(subject.line) : (rule: ApprovalRule) => fitsPlainly(rule, subject);
  for (const [index, rule] of rules.entries())
    if ((rule.tool === "*" || rule.tool === subject.tool) && judge(rule)) return { rule, index };
  return undefined;
}

/** Whether rules that all allow take in everything there is. */
export function isAllowedBy(subject: Subject, kept: readonly Pick<ApprovalRule, "match">[]): boolean {
  // biome-ignore lint/suspicious/noThenProperty: the name of the key in config.json
  const rules = kept.map(({ match }): ApprovalRule => ({ tool: subject.tool, match, then: "allow" }));
  return ruleFor(subject, rules) !== undefined;
}

function fitsPlainly({ match, then }: ApprovalRule, { names, spelled }: Subject): boolean {
  return (then === "allow" ? names : [...names, ...spelled]).some((name) => fits(match, name));
}

/**
 * A line is allowed when every simple command in it is, by one rule or by several, and when nothing else happens in it; or
 * when a rule spells out all of it. A single command is enough to have it refused or asked about.
 */
function judgeLine({ whole, commands, isPlain }: ShellLine): (rule: ApprovalRule) => boolean {
  const open = new Set<SimpleCommand>(commands);
  return ({ match, then }) => {
    if (then !== "allow")
      return (
        (open.size === commands.length && fits(match, whole)) ||
        [...open].some(({ text, program }) => fits(match, text) || fits(match, program))
      );
    // "*" says it of everything; any other star stands for arguments, never for further commands.
    if (match === "*" || (isExact(match) && fits(match, whole))) return true;
    if (!isPlain) return false;
    for (const each of open) if (fits(match, each.text)) open.delete(each);
    return open.size === 0;
  };
}
