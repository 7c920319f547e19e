import type { Breath } from "../../lib/breath.ts";
import type { ProjectView } from "./scope.ts";
import { readWritten, type WrittenCommand } from "./written.ts";

/** Only the first that a project has is read. */
const FILES = ["AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md"];
const MAX_LETTERS = 100_000;
const MAX_SPANS = 500;

const AGAINST = /\b(?:do not|don't|don’t|never|avoid|must not|mustn't|should not|shouldn't|cannot|instead of|rather than|not)\b/i;
const FOR = /\b(?:use|run|prefer|instead|with|execute|call)\b/i;
/** A ban with a condition is no ban: "do not run `npm test` without building first". */
const CONDITION = /^[\s,]*(?:without|unless|until|before|after|when|while|with|if|from|in|on|as|for|more than|twice|again)\b/i;

export interface Instructions {
  commands: WrittenCommand[];
  /** The first words of commands that must not be run. */
  banned: string[];
}

/** The commands that the project asks agents to run, and not to run. */
export async function readInstructions(view: ProjectView, breathe: Breath): Promise<Instructions> {
  const file = FILES.find(view.has);
  const text = file === undefined ? undefined : view.read(file)?.slice(0, MAX_LETTERS);
  if (file === undefined || text === undefined) return { commands: [], banned: [] };
  const spans = spansOf(text).slice(0, MAX_SPANS);
  const banned = spans.filter(({ mood }) => mood === "against").map((span) => span.text);
  const commands: WrittenCommand[] = [];
  for (const span of spans.filter(({ mood }) => mood !== "against")) {
    const read = readWritten(span.text, view, { cwd: ".", from: file });
    if (read) commands.push(read);
    await breathe();
  }
  return { commands, banned };
}

export const isBanned = (command: string, banned: readonly string[]): boolean =>
  banned.some((one) => command === one || command.startsWith(`${one} `));

interface Span {
  text: string;
  mood: "for" | "against" | "told";
}

/** Every piece of code in a text, with the mood of the sentence around it. */
function spansOf(text: string): Span[] {
  const spans: Span[] = [];
  let isFenced = false;
  for (const line of text.split(/\r?\n/)) {
    if (/^\s*(?:```|~~~)/.test(line)) isFenced = !isFenced;
    else if (isFenced) spans.push({ text: line.trim().replace(/^\$ /, "").split(" #")[0]!.trim(), mood: "told" });
    else for (const sentence of sentencesOf(line.slice(0, 5_000))) spans.push(...inSentence(sentence));
  }
  return spans.filter((span) => span.text !== "");
}

/** Text and code in turn, split where a sentence ends outside the code. */
function sentencesOf(line: string): string[][] {
  const sentences: string[][] = [[]];
  for (const [index, piece] of line.split("`").entries()) {
    const [first = "", ...more] = index % 2 === 1 ? [piece] : piece.split(/[.!?] /);
    sentences.at(-1)!.push(first);
    for (const next of more) sentences.push([next]);
  }
  return sentences;
}

function inSentence(pieces: readonly string[]): Span[] {
  let mood: Span["mood"] = "told";
  return pieces.flatMap((piece, index) => {
    if (index % 2 === 0) {
      mood = moodOf(piece) ?? mood;
      return [];
    }
    const isConditional = mood === "against" && CONDITION.test(pieces[index + 1] ?? "");
    return isConditional ? [] : [{ text: piece.trim(), mood }];
  });
}

/** The mood of the last clause that has one; within a clause, a negation outweighs the rest. */
function moodOf(text: string): Span["mood"] | undefined {
  const clauses = text.split(/[,;:()—–]| but /);
  const last = clauses.findLast((clause) => AGAINST.test(clause) || FOR.test(clause));
  if (last === undefined) return undefined;
  return AGAINST.test(last) ? "against" : "for";
}
