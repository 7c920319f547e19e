import { metaOf } from "./markdown.ts";
import { normalize, wordsOf } from "./normalize.ts";

/** Something a page states in a form that can be compared without understanding it: "Port: 8080", "The port of Shop is 8080." */
export interface Fact {
  /** The line or sentence as it stands in the page. */
  says: string;
  /** What it is about, as sorted words; a page can name the same thing in several ways. */
  subjects: string[];
  /** The section it stands in. */
  section: string;
  value: Value;
}

interface Value {
  words: ReadonlySet<string>;
  isDenied: boolean;
}

const MAX_LINE = 400;
/** A longer value is a description, and two descriptions seldom exclude each other. */
const MAX_VALUE_WORDS = 8;
const MAX_SUBJECT_WORDS = 10;
const MAX_LABEL_WORDS = 5;
/** Of words without a number only short ones are taken for names that exclude each other. */
const MAX_NAME_WORDS = 3;
const FENCE = /^\s*(?:```|~~~)/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(\S.*)$/;
const LIST_MARK = /^\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?/;
const VALUE_WORD = /[\p{L}\p{N}]+(?:[./:@_-][\p{L}\p{N}]+)*/gu;
/** The words between what is spoken of and what is said of it; what stays part of the subject. */
const VERBS: Readonly<Record<string, string>> = {
  ...{ is: "", are: "", equals: "", "=": "" },
  ...{ uses: "uses", prefers: "prefers", lives: "lives", works: "works", runs: "runs", listens: "listens" },
};
const SMALL_WORDS = new Set(
  "a an the of in on at for to by with and or from as my our your their his her its this that these those it there here he she they we you i s".split(
    " ",
  ),
);
const DENIALS = new Set(["not", "never"]);
/** Labels of lines about the page itself, or of which a page may have many. */
const NO_LABELS = new Set(
  "tags see note notes example examples todo source sources link links warning hint tip updated written date http https".split(
    " ",
  ),
);
/** Each page in these folders is about one project or person, and so is everything in it. */
const ABOUT_ONE = /^(?:pages\/)?(?:projects|people)\//;

/** The facts of a page, from top to bottom. */
export function factsIn(path: string, text: string): Fact[] {
  const title = contentWords(metaOf(path, text).title);
  const isAboutOne = ABOUT_ONE.test(path);
  const facts: Fact[] = [];
  let section = "";
  let around: string[] = [];
  let isFenced = false;
  for (const line of text.split("\n")) {
    if (FENCE.test(line)) isFenced = !isFenced;
    // A quotation is somebody else's word.
    if (isFenced || line.length > MAX_LINE || line.trim() === "" || line.startsWith(">")) continue;
    const [, marks, heading] = HEADING.exec(line) ?? [];
    if (heading !== undefined) {
      section = marks === "#" ? "" : heading;
      around = contentWords(section);
      continue;
    }
    for (const { own, value, says, isLabel } of statementsIn(line)) {
      const ways = [[...own, ...title, ...around]];
      if (!isAboutOne && section !== "") ways.push([...own, ...around]);
      if (!isAboutOne && !isLabel) ways.push(own);
      const subjects = [...new Set(ways.map(keyOf).filter((key) => key.includes(" ")))];
      if (subjects.length > 0) facts.push({ says, subjects, section, value });
    }
  }
  return facts;
}

/** Whether two values of the same subject exclude each other. */
export function exclude(one: Value, other: Value): boolean {
  const isSame = isWithin(one.words, other.words) && isWithin(other.words, one.words);
  if (isSame) return one.isDenied !== other.isDenied;
  if (one.isDenied || other.isDenied) return false;
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
    if (isLabel) return own.some((word) => NO_LABELS.has(word)) ? [] : statement(own, plain.slice(colon + 2), says, true);
  }
  return says.split(/(?<=[.!?]) /).flatMap((sentence) => {
    const words = sentence.replace(/[*_`]/g, "").split(/\s+/);
    const at = words.findIndex((word) => Object.hasOwn(VERBS, word.toLowerCase()));
    if (at < 1 || sentence.endsWith("?")) return [];
    const verb = VERBS[words[at]!.toLowerCase()]!;
    const own = [...contentWords(words.slice(0, at).join(" ")), ...(verb === "" ? [] : [verb])];
    return statement(own, words.slice(at + 1).join(" "), sentence, false);
  });
}

function statement(own: string[], given: string, says: string, isLabel: boolean): Statement[] {
  const every: string[] = normalize(given).match(VALUE_WORD) ?? [];
  const telling = every.filter((word) => !SMALL_WORDS.has(word));
  const all = telling.length > 0 ? telling : every;
  const words = new Set(all.filter((word) => !DENIALS.has(word)));
  if (own.length === 0 || own.length > MAX_SUBJECT_WORDS || words.size === 0 || words.size > MAX_VALUE_WORDS) return [];
  return [{ own, value: { words, isDenied: words.size < new Set(all).size }, says, isLabel }];
}

const contentWords = (text: string) => wordsOf(normalize(text)).filter((word) => !SMALL_WORDS.has(word));
const keyOf = (words: readonly string[]) => [...new Set(words)].sort().join(" ");
const numbersOf = (words: ReadonlySet<string>) => new Set([...words].filter((word) => /\d/.test(word)));
const isWithin = (part: ReadonlySet<string>, whole: ReadonlySet<string>) => [...part].every((word) => whole.has(word));
