import { withoutEnd } from "../../lib/trim.ts";

export type Verdict = "approved" | "clarification" | "rejected";

const NEGATIONS =
  "not|never|cannot|can't|cant|won't|wont|isn't|isnt|aren't|don't|doesn't|didn't|hasn't|haven't|wasn't|couldn't|shouldn't|wouldn't|unless|until|yet|once|before|if|refuse[ds]?|den(?:y|ied)|withh[eo]ld|unable|un|far from";
const NEGATION = new RegExp(`\\b(?:${NEGATIONS})\\b`);
const ENDS_NEGATED = new RegExp(`(?:\\b(?:${NEGATIONS})|^no)[^\\p{L}\\p{N}]*$`, "u");
const CONDITION =
  /^(?:until|unless|once|if|after|when|provided|providing|assuming|pending|subject to|as soon as|as long as|on condition|but|except|apart from)(?![\p{L}\p{N}])/u;
/** Ends a line that introduces what somebody else said, when a colon follows. */
const SPEECH = /\b(?:says|said|writes|wrote|reads|claims|claimed|contains|quotes|quoted)\b/;
const REFUSALS = [
  "rejected",
  "reject",
  "changes requested",
  "request changes",
  "changes required",
  "changes needed",
  "needs changes",
  "needs work",
  "needs revision",
  "failed",
  "fail",
];
/** In capitals these are verdicts wherever they stand; "invalid input is rejected" is not one. */
const LOUD_REFUSAL =
  /(?<!\bNO[ _])(?<![\w-])(?:REJECT|REJECTED|DISAPPROVED|CHANGES[ _](?:REQUESTED|REQUIRED|NEEDED)|REQUEST[ _]CHANGES|NEEDS[ _](?:CHANGES|WORK|REVISION))(?![\w-])/;

/** "Verdict: APPROVED" states the keyword as much as the keyword alone does; a label has one of these words and no others. */
const LABEL_NOUNS = new Set(
  "verdict decision status result results outcome conclusion recommendation assessment judgment judgement review overall final summary answer qa".split(
    " ",
  ),
);
const LABEL_FILLERS = new Set(
  "my our the this is so therefore thus hence and in reviewer reviewer's code spec specification design test tests testing approval round task".split(
    " ",
  ),
);

/** Nobody can tell what a longer reply comes to. */
const MAX_REPLY = 200_000;

/**
 * Reads a reviewer's reply. Only a line that holds the keyword and nothing else, but for a label such as "Verdict:", approves,
 * and only if no other line takes it back; everything else, an empty reply included, is a rejection.
 */
export function readVerdict(reply: string, approvalKeyword: string, clarificationKeyword?: string): Verdict {
  if (reply.length > MAX_REPLY) return "rejected";
  const lines = plainLines(reply);
  if (clarificationKeyword !== undefined && lines.some((line) => isKeyword(line, clarificationKeyword))) return "clarification";
  if (!lines.some((line) => isKeyword(line, approvalKeyword))) return "rejected";
  const takenBack = lines.some(takesBack(approvalKeyword)) || isPartOfSentence(lines, approvalKeyword);
  return takenBack ? "rejected" : "approved";
}

/** Whether a keyword on its own line is part of a sentence: denied or quoted by the line before it, or limited by the one after. */
function isPartOfSentence(lines: readonly string[], keyword: string): boolean {
  const said = lines.map(bare).filter((line) => line !== "");
  return said.some((line, index) => {
    if (!isKeyword(line, keyword)) return false;
    const [before = "", after = ""] = [said[index - 1], said[index + 1]];
    return ENDS_NEGATED.test(before) || (before.endsWith(":") && SPEECH.test(before)) || CONDITION.test(after);
  });
}

/** Whether a keyword stands alone on a line of the reply. */
export function saysKeyword(reply: string, keyword: string): boolean {
  return plainLines(reply).some((line) => isKeyword(line, keyword));
}

/** The reply without the lines that hold only the keyword. */
export function withoutKeyword(reply: string, keyword: string): string {
  return reply
    .split(/\r?\n/)
    .filter((line) => !isKeyword(line, keyword))
    .join("\n")
    .trim();
}

/** The lines of a reply without fenced code and comments, which may quote somebody else. */
function plainLines(reply: string): string[] {
  const lines: string[] = [];
  let fence: string | undefined;
  for (const line of reply.replace(/<!--[\s\S]*?(?:-->|$)/g, "").split(/\r\n|[\n\r\u2028\u2029]/)) {
    const mark = /^\s*(?:>\s*)*(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence !== undefined) {
      if (mark !== undefined && mark[0] === fence[0] && mark.length >= fence.length && line.trim() === mark) fence = undefined;
      continue;
    }
    if (mark !== undefined) fence = mark;
    else lines.push(line);
  }
  return lines;
}

function isKeyword(line: string, keyword: string): boolean {
  return states(spaced(bare(line)), spaced(bare(keyword)));
}

/** Whether a line states a keyword: alone, or after a label. */
function states(line: string, keyword: string): boolean {
  return line === keyword || (line.endsWith(keyword) && isLabel(line.slice(0, -keyword.length)));
}

function isLabel(text: string): boolean {
  if (text.length > 80 || /[^\p{L}\p{N}' :=.,|*`–—-]/u.test(text) || /[\p{L}\p{N}'.,]$/u.test(text)) return false;
  const words = text.match(/[\p{L}']+/gu) ?? [];
  return words.some((word) => LABEL_NOUNS.has(word)) && words.every((word) => LABEL_NOUNS.has(word) || LABEL_FILLERS.has(word));
}

/** A line without emphasis. A "?", "~~", quotation mark, leading "!" or ">" stays, since it changes the meaning. */
function bare(line: string): string {
  const text = simplified(line).replace(/[✅☑✔🎉👍🚀🟢]|\uFE0F/gu, "");
  const inner = withoutEnd(text.replace(/^[\s#`*_•-]+/u, "").replace(/^\[x\]\s/, ""), /[\s`*_.!|]/u).trimStart();
  return /^[[(][^[\]()]*[\])]$/.test(inner) ? inner.slice(1, -1).trim() : inner;
}

function simplified(text: string): string {
  return text.normalize("NFKC").toLowerCase().replaceAll("’", "'").replaceAll("\\_", "_");
}

/** ALL_PASSED, ALL-PASSED and ALL PASSED are the same keyword. */
function spaced(text: string): string {
  return text.replace(/[_\s-]+/g, " ");
}

/** Whether a line says the opposite of a keyword. */
function takesBack(keyword: string): (line: string) => boolean {
  const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const word = escaped(bare(keyword));
  const struck = new RegExp(`(?:~~|❌|🚫)[^\\p{L}~❌🚫]*${word}|\\b(?:un|dis)-?${word}`, "u");
  const spacedWord = escaped(spaced(bare(keyword)));
  const named = new RegExp(`(?<![\\p{L}\\p{N}])${spacedWord}(?![\\p{L}\\p{N}])`, "u");
  return (line) => {
    const stated = spaced(bare(line));
    if (REFUSALS.some((refusal) => states(stated, refusal)) || LOUD_REFUSAL.test(line.replace(/`[^`]*`/g, ""))) return true;
    const text = simplified(line);
    return struck.test(text) || (named.test(spaced(text)) && NEGATION.test(text));
  };
}
