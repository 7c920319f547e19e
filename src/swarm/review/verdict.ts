import { withoutEnd } from "../../lib/trim.ts";

export type Verdict = "approved" | "clarification" | "rejected";

const NEGATIONS =
  "not|never|cannot|can't|cant|won't|wont|isn't|isnt|aren't|don't|doesn't|didn't|hasn't|haven't|wasn't|couldn't|shouldn't|wouldn't|unless|until|yet|once|before|if|refuse[ds]?|den(?:y|ied)|withh[eo]ld|unable|un|far from";
const NEGATION = new RegExp(`\\b(?:${NEGATIONS})\\b`);
const ENDS_NEGATED = new RegExp(`(?:\\b(?:${NEGATIONS})|^no)[^\\p{L}\\p{N}]*$`, "u");
const CONDITION =
  /^(?:until|unless|once|if|after|when|provided|providing|assuming|pending|subject to|as soon as|as long as|on condition)(?![\p{L}\p{N}])/u;
const REFUSAL = new Set([
  "rejected",
  "reject",
  "changes requested",
  "changes_requested",
  "request changes",
  "changes required",
  "failed",
]);

/** Nobody can tell what a longer reply comes to. */
const MAX_REPLY = 200_000;

/**
 * Reads a reviewer's reply. Only a line that holds the keyword and nothing else approves, and only if no other line takes it
 * back; everything else, an empty reply included, is a rejection.
 */
export function readVerdict(reply: string, approvalKeyword: string, clarificationKeyword?: string): Verdict {
  if (reply.length > MAX_REPLY) return "rejected";
  const lines = plainLines(reply);
  if (clarificationKeyword !== undefined && lines.some((line) => isKeyword(line, clarificationKeyword))) return "clarification";
  if (!lines.some((line) => isKeyword(line, approvalKeyword))) return "rejected";
  const takenBack = lines.some(takesBack(approvalKeyword)) || isPartOfSentence(lines, approvalKeyword);
  return takenBack ? "rejected" : "approved";
}

/** Whether a keyword on its own line is really part of a sentence: denied by the line before it, or limited by the one after. */
function isPartOfSentence(lines: readonly string[], keyword: string): boolean {
  const said = lines.map(bare).filter((line) => line !== "");
  const word = bare(keyword);
  return said.some(
    (line, index) => line === word && (ENDS_NEGATED.test(said[index - 1] ?? "") || CONDITION.test(said[index + 1] ?? "")),
  );
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
  return bare(line) === bare(keyword);
}

/** A line without emphasis. A "?", "~~", leading "!" or ">" stays, since it changes the meaning. */
function bare(line: string): string {
  return withoutEnd(simplified(line).replace(/^(?:[\s#"'`*_•-]|✅|☑|✔|\uFE0F)+/u, ""), /[\s"'`*_.!✅☑✔]|\uFE0F/u);
}

function simplified(text: string): string {
  return text.normalize("NFKC").toLowerCase().replaceAll("’", "'");
}

/** Whether a line says the opposite of a keyword. */
function takesBack(keyword: string): (line: string) => boolean {
  const word = bare(keyword).replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const struck = new RegExp(`(?:~~|❌|🚫)[^\\p{L}~❌🚫]*${word}|\\b(?:un|dis)-?${word}`, "u");
  const named = new RegExp(`(?<![\\p{L}\\p{N}])${word}(?![\\p{L}\\p{N}])`, "u");
  return (line) => {
    const text = simplified(line);
    if (REFUSAL.has(bare(line)) || struck.test(text)) return true;
    return named.test(text) && NEGATION.test(text);
  };
}
