import { metaOf } from "./markdown.ts";
import { normalize, wordsOf } from "./normalize.ts";

/** A toStatement simple enough to compare by its words: "Port: 8080", "The port of Shop is 8080." */
export interface Fact {
  /** The line or sentence, verbatim. */
  says: string;
  /** What it is about, as sorted words; one entry for each way to name the subject. */
  subjects: string[];
  /** The section that contains it. */
  section: string;
  value: Value;
}

interface Value {
  words: ReadonlySet<string>;
  isNegated: boolean;
}

const MAX_LINE = 400;
/** A longer value is a description, and two descriptions rarely contradict each other. */
const MAX_VALUE_WORDS = 8;
const MAX_SUBJECT_WORDS = 10;
const MAX_LABEL_WORDS = 5;
/** Values without numbers are compared as names only up to this many words. */
const MAX_NAME_WORDS = 3;
const FENCE = /^\s*(?:```|~~~)/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(\S.*)$/;
const LIST_MARK = /^\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?/;
const VALUE_WORD = /[\p{L}\p{N}]+(?:[./:@_-][\p{L}\p{N}]+)*/gu;
/** Verbs that separate the subject from the value, and what each adds to the subject. */
const VERBS: Readonly<Record<string, string>> = {
  ...{ is: "", are: "", equals: "", "=": "" },
  ...{ uses: "uses", prefers: "prefers", lives: "lives", works: "works", runs: "runs", listens: "listens" },
};
const STOP_WORDS = new Set(
  "a an the of in on at for to by with and or from as my our your their his her its this that these those it there here he she they we you i s".split(
    " ",
  ),
);
const NEGATIONS = new Set(["not", "never"]);
/** Labels that describe the page itself, or that may repeat on a page. */
const IGNORED_LABELS = new Set(
  "tags see note notes example examples todo source sources link links warning hint tip updated written date http https".split(
    " ",
  ),
);
/** Each page in these folders is about a single project or person. */
const SINGLE_SUBJECT_FOLDER = /^(?:pages\/)?(?:projects|people)\//;

/** The facts of a page, from top to bottom. */
export function factsIn(path: string, text: string): Fact[] {
  const title = contentWords(metaOf(path, text).title);
  const hasSingleSubject = SINGLE_SUBJECT_FOLDER.test(path);
  const facts: Fact[] = [];
  let section = "";
  let sectionWords: string[] = [];
  let isFenced = false;
  for (const line of text.split("\n")) {
    if (FENCE.test(line)) isFenced = !isFenced;
    // Skip quotations: somebody else said that.
    if (isFenced || line.length > MAX_LINE || line.trim() === "" || line.startsWith(">")) continue;
    const [, marks, heading] = HEADING.exec(line) ?? [];
    if (heading !== undefined) {
      section = marks === "#" ? "" : heading;
      sectionWords = contentWords(section);
      continue;
    }
    for (const { own, value, says, isLabel } of statementsIn(line)) {
      const names = [[...own, ...title, ...sectionWords]];
      if (!hasSingleSubject && section !== "") names.push([...own, ...sectionWords]);
      if (!hasSingleSubject && !isLabel) names.push(own);
      const subjects = [...new Set(names.map(keyOf).filter((key) => key.includes(" ")))];
      if (subjects.length > 0) facts.push({ says, subjects, section, value });
    }
  }
  return facts;
}

/** Whether two values for the same subject contradict each other. */
export function areContradictory(one: Value, other: Value): boolean {
  const isSame = isWithin(one.words, other.words) && isWithin(other.words, one.words);
  if (isSame) return one.isNegated !== other.isNegated;
  if (one.isNegated || other.isNegated) return false;
  if (isWithin(one.words, other.words) || isWithin(other.words, one.words)) return false;
  const [numbers, otherNumbers] = [numbersOf(one.words), numbersOf(other.words)];
  if (numbers.size > 0 && otherNumbers.size > 0) return !isWithin(numbers, otherNumbers) && !isWithin(otherNumbers, numbers);
  if (numbers.size > 0 || otherNumbers.size > 0) return false;
  const isShort = one.words.size <= MAX_NAME_WORDS && other.words.size <= MAX_NAME_WORDS;
  return isShort && ![...one.words].some((word) => other.words.has(word));
}

interface Statement {
  own: string[];
  value: Value;
  says: string;
  isLabel: boolean;
}

function statementsIn(line: string): Statement[] {
  const says = line.replace(LIST_MARK, "").trim();
  const plain = says.replace(/[*_`]/g, "");
  const colon = plain.indexOf(": ");
  if (colon > 0) {
    const label = plain.slice(0, colon);
    const own = contentWords(label);
    const isLabel = label.split(/\s+/).length <= MAX_LABEL_WORDS && !/[.!?,;]/.test(label);
    if (isLabel) return own.some((word) => IGNORED_LABELS.has(word)) ? [] : toStatement(own, plain.slice(colon + 2), says, true);
  }
  return says.split(/(?<=[.!?]) /).flatMap((sentence) => {
    const words = sentence.replace(/[*_`]/g, "").split(/\s+/);
    const at = words.findIndex((word) => Object.hasOwn(VERBS, word.toLowerCase()));
    if (at < 1 || sentence.endsWith("?")) return [];
    const verb = VERBS[words[at]!.toLowerCase()]!;
    const own = [...contentWords(words.slice(0, at).join(" ")), ...(verb === "" ? [] : [verb])];
    return toStatement(own, words.slice(at + 1).join(" "), sentence, false);
  });
}

function toStatement(own: string[], given: string, says: string, isLabel: boolean): Statement[] {
  const every: string[] = normalize(given).match(VALUE_WORD) ?? [];
  const meaningful = every.filter((word) => !STOP_WORDS.has(word));
  const all = meaningful.length > 0 ? meaningful : every;
  const words = new Set(all.filter((word) => !NEGATIONS.has(word)));
  if (own.length === 0 || own.length > MAX_SUBJECT_WORDS || words.size === 0 || words.size > MAX_VALUE_WORDS) return [];
  return [{ own, value: { words, isNegated: words.size < new Set(all).size }, says, isLabel }];
}

const contentWords = (text: string) => wordsOf(normalize(text)).filter((word) => !STOP_WORDS.has(word));
const keyOf = (words: readonly string[]) => [...new Set(words)].sort().join(" ");
const numbersOf = (words: ReadonlySet<string>) => new Set([...words].filter((word) => /\d/.test(word)));
const isWithin = (part: ReadonlySet<string>, whole: ReadonlySet<string>) => [...part].every((word) => whole.has(word));
