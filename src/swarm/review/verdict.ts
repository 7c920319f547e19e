import { withoutThinking } from "../../lib/thinking.ts";
import { withoutEnd } from "../../lib/trim.ts";

export type Verdict = "approved" | "clarification" | "rejected";

const NEGATIONS =
  "not|never|cannot|can't|cant|won't|wont|isn't|isnt|aren't|don't|doesn't|didn't|hasn't|haven't|wasn't|couldn't|shouldn't|wouldn't|unless|until|yet|once|before|if|refuse[ds]?|den(?:y|ied)|withh[eo]ld|unable|un|far from";
/** The same in other languages: models answer in the language of the issue. None of these is an English word. */
const NEGATIONS_ELSEWHERE =
  "nicht|kein|keine|keinesfalls|niemals|niet|geen|ikke|inte|pas|jamais|tampoco|nunca|não|nao|nie|nem|ei|не|нет|нельзя";
const NOT_A_LETTER = { before: "(?<![\\p{L}\\p{N}])", after: "(?![\\p{L}\\p{N}])" };
const NEGATION = new RegExp(
  `${NOT_A_LETTER.before}(?:${NEGATIONS}|${NEGATIONS_ELSEWHERE})${NOT_A_LETTER.after}|[不未没沒]|ない|않|아니`,
  "u",
);
const ENDS_NEGATED = new RegExp(
  `(?:${NOT_A_LETTER.before}(?:${NEGATIONS}|${NEGATIONS_ELSEWHERE})|^no|[不未没沒])[^\\p{L}\\p{N}]*$`,
  "u",
);
/** What limits the verdict on the next line. */
const ENDS_LIMITED = /(?<!\p{L})(?:conditionally|provisionally|tentatively|partially|partly|almost|nearly|hardly|barely)$/u;
/** A sentence that goes on in the next line, and what in it turns the verdict there around. */
const UNFINISHED = /(?<!\p{L})(?:is|are|be|as|the|a|an|to|with|of|say|saying|write|answer|reply|give|verdict|this|it)$/u;
const TURNED = /\b(?:impossible|no way|no reason|nobody|no one|hesitate|reluctant|hard to|too early)\b/;
/** An introduction of what would be said later. */
const LATER =
  /^(?:then|once|if|when|whenever|as soon as|unless|until|after (?:that|this|these|those|the fix|fixing|a fix)|afterwards|dann|danach|sobald|wenn|después|quand)(?![\p{L}\p{N}]).{0,200}[:,…]$|^(?:then|afterwards|dann|danach)$/u;
const CONDITION =
  /^(?:until|unless|once|if|after|when|provided|providing|assuming|pending|subject to|as soon as|as long as|on condition|but|however|although|actually|wait|except|apart from|(?:is|was) (?:what|not|only|the (?:text|word|line|string|value))|would (?:be|have|only)|should (?:be|not|only)|could (?:be|have)|aber|jedoch|sobald|sofern|falls|wenn|sauf|mais|pero|salvo|mas|però|но)(?![\p{L}\p{N}])/u;
/** If a colon follows, such a line introduces what somebody else said or would say. */
const SPEECH =
  /\b(?:says|said|writes|wrote|write|reads|claims|claimed|contains|quotes|quoted|behalf|example|e\.g|instance|beispiel|ejemplo|exemple|options?|format|template|placeholder|instructions?)\b/;
/** Such a line tells somebody what to say. */
const TELLS = /\b(?:say|write|print|output|(?:respond|reply|answer|end) with)$/;
/** What nobody writes who approves. */
const WITHDRAWN =
  /\bon second thought|\btake (?:that|it|this) back\b|\bscratch that\b|\bjust kidding\b|\bchanged my mind\b|\bspoke too soon\b|\bdisregard (?:that|the above|my)\b|^do(?: not|n't) (?:merge|approve|ship)\b/;
/** Takes an approval back where the line goes on with it. */
const WITHDRAWS = /\b(?:withdraw|retract|revoke|rescind)/g;
/** A finding that has to be mended first, with what it is. */
const BLOCKER =
  /^\W{0,20}(?:\d{1,3}[.)]\W{0,20})?(?:BLOCKER|BLOCKING|MUST[ -]FIX)\b\W{0,20}:\W{0,20}(?!(?:none|no|nothing|n\/a|0|keine?)\b)\w/i;
const REFUSALS = [
  "blocked",
  "denied",
  "declined",
  "refused",
  "disapproved",
  "not ready",
  "do not merge",
  "needs fixes",
  "fixes required",
  "fixes needed",
  "revision required",
  "revisions required",
  "must fix",
  "abgelehnt",
  "rechazado",
  "rejeté",
  "refusé",
  "zurückgewiesen",
  "respinto",
  "reprovado",
  "拒绝",
  "不通过",
  "却下",
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
/** In capitals these are verdicts anywhere in a line; "invalid input is rejected" is not one. */
const LOUD_REFUSAL =
  /(?<!\bNO[ _])(?<![\w-])(?:REJECT|REJECTED|DISAPPROVED|CHANGES[ _](?:REQUESTED|REQUIRED|NEEDED)|REQUEST[ _]CHANGES|NEEDS[ _](?:CHANGES|WORK|REVISION|FIXES))(?![\w-])/;

/** "Verdict: APPROVED" counts like the keyword alone; a label consists of these words only, with at least one noun. */
const LABEL_NOUNS = new Set(
  (
    "verdict decision status result results outcome conclusion recommendation assessment judgment judgement review overall final summary answer qa " +
    "urteil fazit ergebnis entscheidung bewertung veredicto resultado conclusión decisión veredito décision résultat verdetto вердикт решение результат итог 結論 结论 最终结论 评审结论 评审结果 审查结论 审查结果 判定 結果 结果 최종 결론 판정"
  ).split(" "),
);
const LABEL_FILLERS = new Set(
  "my our the this is so therefore thus hence and in reviewer reviewer's code spec specification design test tests testing approval round task mein das der die ist lautet mi el la es mon le est finale definitivo definitiva endgültige endgültiges".split(
    " ",
  ),
);

/** A longer reply is not read and counts as a rejection. */
const MAX_REPLY = 200_000;

/**
 * Reads a reviewer's reply. Only a line with nothing but the keyword, or a label such as "Verdict:" and the keyword, approves,
 * and only if no other line takes it back; everything else, an empty reply included, is a rejection.
 */
export function readVerdict(reply: string, approvalKeyword: string, clarificationKeyword?: string): Verdict {
  if (reply.length > MAX_REPLY) return "rejected";
  const told = inJson(reply);
  if (told) return isKeyword(told.verdict, approvalKeyword) && !told.hasFindings ? "approved" : "rejected";
  if (formsIn(reply).some(({ verdict }) => refuses(verdict))) return "rejected";
  const lines = plainLines(reply);
  if (clarificationKeyword !== undefined && lines.some((line) => isKeyword(line, clarificationKeyword))) return "clarification";
  if (!lines.some((line) => isKeyword(line, approvalKeyword))) return "rejected";
  const takenBack = lines.some(takesBack(approvalKeyword)) || isPartOfSentence(lines, approvalKeyword);
  return takenBack ? "rejected" : "approved";
}

/** Reads a reply that is a single JSON object with a verdict, as models write that were trained to fill in forms. */
function inJson(reply: string): { verdict: string; hasFindings: boolean } | undefined {
  const text = withoutThinking(reply)
    .trim()
    .replace(/^```(?:json)?[^\S\n]*\n([\s\S]*)\n```$/, "$1")
    .trim();
  return formOf(text);
}

/** The verdicts of forms in fences, amid other text. They may be examples, so they can only take an approval back. */
function formsIn(reply: string): { verdict: string }[] {
  const fenced = withoutThinking(reply)
    .split(/^```.*$/m)
    .filter((_, index) => index % 2 === 1);
  return fenced.flatMap((text) => (/"(?:verdict|decision)"/i.test(text) ? (formOf(text.trim()) ?? []) : []));
}

function formOf(text: string): { verdict: string; hasFindings: boolean } | undefined {
  if (!text.startsWith("{") || !text.endsWith("}")) return undefined;
  try {
    const entries = Object.entries(JSON.parse(text) as Record<string, unknown>);
    const [only, second] = entries.filter(([key]) => LABEL_NOUNS.has(key.toLowerCase()) && key.toLowerCase() !== "summary");
    if (!only || second || typeof only[1] !== "string") return undefined;
    const isEmpty = ([key, value]: [string, unknown]) =>
      value === null ||
      value === "" ||
      (value === true && !OF_FINDINGS.test(key)) ||
      (value === false && OF_FINDINGS.test(key)) ||
      (Array.isArray(value) && value.length === 0);
    const isRemark = ([key, value]: [string, unknown]) =>
      /^(?:summary|reason|reasoning|explanation|comments?|rationale|notes?)$/i.test(key)
        ? typeof value === "string"
        : /^(?:confidence|score|rating|round|iteration)$/i.test(key) && typeof value === "number";
    return { verdict: only[1], hasFindings: entries.some((each) => each !== only && !isEmpty(each) && !isRemark(each)) };
  } catch {
    // Not JSON: it is read line by line.
    return undefined;
  }
}

/** Fields that say whether something is still to be done. */
const OF_FINDINGS = /block|reject|fail|issue|problem|finding|change|fix|revis|needs/i;

/**
 * Whether a keyword on its own line is part of a sentence: negated or quoted by the line before it, or limited by the one after.
 */
function isPartOfSentence(lines: readonly string[], keyword: string): boolean {
  const said = lines.map(bare).filter((line) => line !== "");
  return said.some((line, index) => {
    if (!isKeyword(line, keyword)) return false;
    const [before = "", after = ""] = [said[index - 1], said[index + 1]];
    const isSpoken = (before.endsWith(":") && SPEECH.test(before)) || TELLS.test(before);
    const isTurned = UNFINISHED.test(before) && TURNED.test(before);
    const isLimited = ENDS_NEGATED.test(before) || ENDS_LIMITED.test(before) || LATER.test(before);
    return isLimited || isTurned || isSpoken || CONDITION.test(after);
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

/** The lines of a reply without fenced code, comments and quotes, which may be somebody else's, and without thinking. */
function plainLines(reply: string): string[] {
  const lines: string[] = [];
  let fence: string | undefined;
  const own = withoutQuotedTags(withoutThinking(withoutChannels(reply)))
    .replace(/<!--[\s\S]*?(?:-->|$)/g, "")
    .replace(/<quote(?:\s[^<>]{0,200})?>[\s\S]*?(?:<\/quote>|$)/gi, "")
    .replace(/<blockquote(?:\s[^<>]{0,200})?>[\s\S]*?(?:<\/blockquote>|$)/gi, "")
    .replace(/<example(?:\s[^<>]{0,200})?>[\s\S]*?(?:<\/example>|$)/gi, "")
    .replace(/<(verdict|decision|answer|result|final)>([^<>\n]{0,200})<\/(?:verdict|decision|answer|result|final)>/gi, "$1: $2")
    .replace(/\\boxed\{(?:\\text\{)?([^{}\n]{0,200})\}{1,2}/g, "$1");
  for (const line of own.split(/\r\n|[\n\r\u2028\u2029]/)) {
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

/** Replies of models whose server passes their channels through: only what they say in the last one counts. */
function withoutChannels(reply: string): string {
  const at = reply.lastIndexOf("<|channel|>final<|message|>");
  const said = at < 0 ? reply : reply.slice(at).replace("<|channel|>final<|message|>", "");
  return said.replace(/<\|[\w-]{1,40}\|>/g, "\n");
}

/** Tags in which models put what they say themselves. */
const OWN_TAG =
  /^(?:verdict|decision|answer|final|final_answer|result|output|response|reply|review|summary|details|conclusion|b|i|u|p|em|strong|div|span|center|font|h[1-6]|ul|ol|li|table|t[hdr]|tbody|thead|body|html)$/i;

/** A reply without the content of all other tags, such as files and results of tools, which is somebody else's. */
function withoutQuotedTags(reply: string): string {
  const parts: string[] = [];
  let from = 0;
  let open: { name: string; at: number } | undefined;
  for (const { 0: tag, 1: slash, 2: name = "", index } of reply.matchAll(/<(\/?)([A-Za-z][\w-]{0,40})(?:\s[^<>]{0,200})?>/g)) {
    if (OWN_TAG.test(name)) continue;
    if (slash === "") open ??= { name, at: index };
    else if (open?.name === name) {
      parts.push(reply.slice(from, open.at));
      from = index + tag.length;
      open = undefined;
    }
  }
  return [...parts, reply.slice(from)].join("\n");
}

function isKeyword(line: string, keyword: string): boolean {
  return states(spaced(bare(line.replace(ALL_IS_WELL, ""))), spaced(bare(keyword)));
}

/** Words after a verdict that take nothing from it. */
const ALL_IS_WELL =
  /[\s(—–:;,.-]{1,5}(?:with )?no (?:further |more |other |open |remaining )?(?:issues?|changes?|findings?|problems?|comments?|remarks?|objections?|concerns?)(?: (?:found|requested|required|needed|necessary|remain|left))?[.!)*\s]{0,5}$/i;

/** Whether a line states a keyword: alone, or after a label. */
function states(line: string, keyword: string): boolean {
  const plain = line.replace(/(?<=[:=→]\s?)[([]([^()[\]]*)[)\]]$/, "$1");
  return plain === keyword || (plain.endsWith(keyword) && isLabel(plain.slice(0, -keyword.length)));
}

function isLabel(text: string): boolean {
  if (text.length > 80 || /[^\p{L}\p{N}' :=→.,|*`–—-]/u.test(text) || /[\p{L}\p{N}'.,]$/u.test(text)) return false;
  const words = text.match(/[\p{L}']+/gu) ?? [];
  return words.some((word) => LABEL_NOUNS.has(word)) && words.every((word) => LABEL_NOUNS.has(word) || LABEL_FILLERS.has(word));
}

function isWithdrawn(line: string): boolean {
  return (
    WITHDRAWN.test(line) || [...line.matchAll(WITHDRAWS)].some(({ index }) => /\bapprov/.test(line.slice(index, index + 120)))
  );
}

/** A line without emphasis. A "?", "~~", quotation mark, leading "!" or ">" stays, since it changes the meaning. */
function bare(line: string): string {
  const text = simplified(line).replace(/[✅☑✔✓🎉👍🚀🟢]|\uFE0F/gu, "");
  const inner = withoutEnd(text.replace(/^[\s#`*_•=|-]+/u, "").replace(/^\[x\]\s/, ""), /[\s`*_.!|#=]/u).trimStart();
  return /^[[(][^[\]()]*[\])]$/.test(inner) ? inner.slice(1, -1).trim() : inner;
}

function simplified(text: string): string {
  return text
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll("’", "'")
    .replaceAll("\\_", "_")
    .replace(/[-=]>|[➜➡⇒]/g, "→");
}

/** ALL_PASSED, ALL-PASSED and ALL PASSED are the same keyword. */
function spaced(text: string): string {
  return text.replace(/[_\s-]+/g, " ");
}

function refuses(line: string): boolean {
  const stated = spaced(bare(line));
  return REFUSALS.some((refusal) => states(stated, refusal));
}

/** Whether a line contradicts the approval. */
function takesBack(keyword: string): (line: string) => boolean {
  const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const word = escaped(bare(keyword));
  const struck = new RegExp(`(?:(?:~~|❌|🚫|(?<!\\p{L})(?:no|non)\\b)[^\\p{L}~❌🚫]*|\\b(?:un|dis)-?)${word}`, "u");
  const spacedWord = escaped(spaced(bare(keyword)));
  const named = new RegExp(`(?<![\\p{L}\\p{N}])${spacedWord}(?![\\p{L}\\p{N}])`, "u");
  return (line) => {
    if (refuses(line) || LOUD_REFUSAL.test(line.replace(/`[^`]*`/g, ""))) return true;
    const text = simplified(line);
    if (isWithdrawn(bare(line)) || BLOCKER.test(text)) return true;
    return struck.test(text) || (named.test(spaced(text)) && NEGATION.test(text));
  };
}
