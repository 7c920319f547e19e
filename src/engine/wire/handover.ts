import { z } from "zod";
import { estimateTokens, lastOfTokens } from "../../lib/estimate-tokens.ts";
import { indented, oneLine } from "../../lib/quoted.ts";

/** Something that was said, independent of the wire format. `record` is text that IO itself stored of a conversation. */
export const Said = z.object({ role: z.enum(["user", "assistant", "tool", "record"]), text: z.string() });
export type Said = z.infer<typeof Said>;

/** What a session is told about its predecessors. The next summary is made of all of this and everything since. */
export const Handover = z.object({
  summary: z.string(),
  /** The user's own words from that time, shortened, in case the summary is poor. */
  said: z.array(z.string()),
  /** What came after the summary. */
  latest: z.array(Said),
});
export type Handover = z.infer<typeof Handover>;

export const NO_HANDOVER: Handover = { summary: "", said: [], latest: [] };

/** Shares of the tokens that a window has for a conversation. */
const SAID = 0.1;
const LATEST = 0.45;
const SAID_FIRST = 12;
const SAID_LAST = 24;
const SAID_CHARACTERS = 240;
/** How many characters of a tool's result go into a summary, from its beginning and end. */
const RESULT_BEGINNING = 900;
const RESULT_END = 600;
/** More than any window; anything older is dropped. */
const MOST_CHARACTERS = 2_000_000;

export function isEmpty({ summary, said, latest }: Handover): boolean {
  return summary === "" && said.length === 0 && latest.length === 0;
}

/** The hand-over extended by what came since. A repeated record is included once. */
export function withLatest(handover: Handover, more: readonly Said[]): Handover {
  const isKnown = ({ role, text }: Said) =>
    role === "record" && handover.latest.some((each) => each.role === role && each.text === text);
  const latest = [...handover.latest, ...more.filter((each) => each.text.trim() !== "" && !isKnown(each))];
  let left = MOST_CHARACTERS;
  const start = latest.findLastIndex(({ text }) => {
    left -= text.length;
    return left < 0;
  });
  return { ...handover, latest: latest.slice(start + 1) };
}

/** The hand-over as text for a session, within the tokens that its window has for a conversation. */
export function handoverText(handover: Handover, room: number): string {
  const latest = linesOf(handover.latest);
  return [
    ...(handover.summary ? [summaryText(handover.summary)] : []),
    ...saidText(handover.said, room),
    ...(latest ? [`The latest, word for word:\n${lastOfTokens(latest, Math.floor(room * LATEST))}`] : []),
  ].join("\n\n");
}

/** Whether that text is complete. */
export function isToldWhole({ latest }: Handover, room: number): boolean {
  return estimateTokens(linesOf(latest)) <= Math.floor(room * LATEST);
}

export function summaryText(summary: string): string {
  return `Summary:\n${indented(summary)}`;
}

/** As many of the user's own words as fit: the first, then the last. */
export function saidText(said: readonly string[], room: number): string[] {
  const most = Math.max(80, Math.floor(room * SAID));
  const kept: string[] = [];
  let used = 0;
  for (const line of said.map((each) => `- ${each}`)) {
    used += estimateTokens(line) + 1;
    if (used > most) break;
    kept.push(line);
  }
  return kept.length > 0 ? [`The user's own words in that time, shortened:\n${kept.join("\n")}`] : [];
}

/** Merges the user's earlier words with those since: the very first, and the last. */
export function saidByUser(earlier: readonly string[], since: readonly Said[]): string[] {
  const lines = [
    ...earlier,
    ...since.flatMap(({ role, text }) => (role === "user" ? [oneLine(withoutTime(text), SAID_CHARACTERS)] : [])),
  ];
  return lines.length <= SAID_FIRST + SAID_LAST ? lines : [...lines.slice(0, SAID_FIRST), ...lines.slice(-SAID_LAST)];
}

const WHO = { user: "User", assistant: "Assistant", tool: "Result", record: "" };

/** An item as a line for a summary. Only tool results are shortened. */
export function lineOf({ role, text }: Said): string {
  if (role === "record") return text;
  const words = withoutTime(text);
  const isLong = role === "tool" && words.length > RESULT_BEGINNING + RESULT_END;
  const told = isLong ? `${words.slice(0, RESULT_BEGINNING).toWellFormed()} … ${words.slice(-RESULT_END).toWellFormed()}` : words;
  return `${WHO[role]}: ${indented(told).trimStart()}`;
}

/** A text without the timestamp that the runtime puts before user messages. */
export function withoutTime(text: string): string {
  return text.replace(/^<current_datetime>[^<]*<\/current_datetime>\s*/, "");
}

function linesOf(latest: readonly Said[]): string {
  return latest.map(lineOf).join("\n");
}
