/** A project's commit conventions, as far as its latest commits agree. */
export interface CommitStyle {
  /** `feat(scope): …`, with the types and scopes in use. */
  conventional: { types: readonly string[]; scopes: readonly string[]; isScoped: boolean } | undefined;
  /** A prefix for the kind of change: an emoji, `:bug:`, `BUG: ` or `[FIX] `; those in use. */
  marks: readonly string[];
  /** The path before the colon in `net/http: …`. */
  areas: readonly string[];
  /** How a ticket's key is prefixed: `ABC-1: …`, `[ABC-1] …` or `ABC-1 …`. */
  ticket: { key: string; before: string; after: string } | undefined;
  /** Whether the description begins with a lower-case letter. */
  lowerCase: boolean;
  /** Whether it ends with a period. */
  fullStop: boolean;
  /** Whether commits end with `Signed-off-by`. */
  signOff: boolean;
}

/** What a commit message is made from. */
export interface CommitSubject {
  /** A task or request; its first line is used. */
  text: string;
  /** Texts that may contain a ticket's key. */
  request: string;
  /** The changed files. */
  files: readonly string[];
}

const MAX_LENGTH = 72;
const TYPES = ["feat", "fix", "docs", "test", "refactor", "perf", "chore", "build", "ci", "style", "revert"];
const CONVENTIONAL = /^([a-z]{2,12})(?:\(([^()\n]{1,40})\))?!?: (?=\S)/;
const AREA = /^([A-Za-z0-9_.][A-Za-z0-9_./-]{0,60}): (?=\S)/;
const TICKET = /^(\[?)([A-Z][A-Z0-9]{1,9})-\d{1,7}(\]?:? )(?=\S)/;
/** Prefixes for kinds of changes, by their type in conventional commits. */
const MARKS: Readonly<Record<string, readonly string[]>> = {
  feat: [":sparkles: ", "✨ ", "ENH: ", "FEAT: ", "[IMP] ", "[ADD] ", "[FEAT] ", "[FEATURE] "],
  fix: [":bug: ", "🐛 ", "BUG: ", "FIX: ", "[FIX] ", "[BUG] ", "[BUGFIX] "],
  docs: [":memo: ", "📝 ", "DOC: ", "DOCS: ", "[DOC] ", "[DOCS] "],
  test: [":white_check_mark: ", "✅ ", "TST: ", "TEST: ", "[TEST] "],
  refactor: [":recycle: ", "♻️ ", "♻ ", "MAINT: ", "REF: ", "CLN: ", "[REF] ", "[REFACTOR] "],
  perf: [":zap: ", "⚡️ ", "⚡ ", "PERF: ", "[PERF] "],
  chore: [":wrench: ", "🔧 ", "MNT: ", "MAINT: ", "BLD: ", "[CHORE] "],
};
const ALL_MARKS = Object.values(MARKS).flat();
const markOf = (subject: string) => ALL_MARKS.find((mark) => subject.startsWith(mark));
const GITMOJI = /^(?::[a-z0-9_]{2,40}:|\p{Extended_Pictographic}\ufe0f?) ?(?=\S)/u;

const SIGNED_OFF = /^Signed-off-by: \S/m;

/** What the subjects of some commits have in common. */
function seenIn(messages: readonly string[]) {
  const texts = messages.map((message) => message.trim()).filter((message) => message !== "");
  const whole = texts.map((text) => text.split("\n", 1)[0]!);
  const isMarked = (subject: string) => GITMOJI.test(subject) || markOf(subject) !== undefined;
  const subjects = whole.map((subject) => subject.slice((markOf(subject) ?? GITMOJI.exec(subject)?.[0] ?? "").length));
  const conventional = subjects.flatMap((subject) => {
    const found = CONVENTIONAL.exec(subject.replace(TICKET, ""));
    return found && TYPES.includes(found[1]!) ? [{ type: found[1]!, scope: found[2] }] : [];
  });
  const tickets = subjects.flatMap((subject) => {
    const found = TICKET.exec(subject);
    return found ? [{ key: found[2]!, before: found[1]!, after: found[3]! }] : [];
  });
  return {
    whole,
    subjects,
    conventional,
    tickets,
    areas: subjects.flatMap((subject) => AREA.exec(subject.replace(TICKET, ""))?.[1] ?? []),
    marked: whole.filter(isMarked).length,
    signed: texts.filter((text) => SIGNED_OFF.test(text)).length,
    isUsual: (count: number, share: number) => texts.length >= 3 && count >= share * texts.length,
  };
}

/** Projects change their habits: the newest commits decide, and all of them provide the words. */
const NEWEST = 20;

/** Learns the style from a project's latest commit messages, without merges. Needs a minimum number of them. */
export function learnCommitStyle(messages: readonly string[]): CommitStyle {
  const all = seenIn(messages);
  const newest = seenIn(messages.slice(0, NEWEST));
  const { isUsual, conventional, subjects } = newest;
  const isConventional = isUsual(conventional.length, 0.6);
  const descriptions = subjects.map((subject) => subject.replace(TICKET, "").replace(isConventional ? CONVENTIONAL : AREA, ""));
  const lower = descriptions.filter((text) => /^\p{Ll}/u.test(text)).length;
  const upper = descriptions.filter((text) => /^\p{Lu}/u.test(text)).length;
  return {
    conventional: isConventional
      ? {
          types: unique(all.conventional.map(({ type }) => type)),
          scopes: unique(all.conventional.flatMap(({ scope }) => scope ?? [])),
          isScoped: conventional.filter(({ scope }) => scope !== undefined).length >= 0.9 * conventional.length,
        }
      : undefined,
    marks: isUsual(newest.marked, 0.6) ? unique(all.whole.flatMap((subject) => markOf(subject) ?? [])) : [],
    areas: !isConventional && isUsual(newest.areas.length, 0.6) ? unique(all.areas) : [],
    ticket: isUsual(newest.tickets.length, 0.6) ? mostCommon(newest.tickets) : undefined,
    lowerCase: subjects.length >= 3 && lower > upper,
    fullStop: isUsual(subjects.filter((subject) => /[^.]\.$/.test(subject)).length, 0.6),
    signOff: isUsual(newest.signed, 0.9),
  };
}

/** Writes a commit message in the project's style. `signer` is `Name <address>`; `more` are paragraphs for the body. */
export function wordCommit(
  style: CommitStyle,
  subject: CommitSubject,
  { signer, more = [] }: { signer?: string | undefined; more?: string[] } = {},
): string {
  const whole = plain(subject.text);
  const given = TICKET.exec(whole)?.[0] ?? "";
  const own = whole.slice(given.length);
  const worded = CONVENTIONAL.exec(own);
  const isWorded = worded !== null && TYPES.includes(worded[1]!);
  const mark = isWorded || markOf(own) || GITMOJI.test(own) ? "" : markFor(style, subject, own);
  const prefix = `${mark}${ticketOf(style, subject, given)}${isWorded ? "" : prefixOf(style, subject, own)}`;
  const description = isWorded ? own : inCase(own, style.lowerCase);
  const room = MAX_LENGTH - prefix.length - (style.fullStop ? 1 : 0);
  const short = shortened(description, room);
  const paragraphs = [
    `${prefix}${short}${style.fullStop ? "." : ""}`,
    ...(short === description ? [] : [wrapped(description)]),
    ...more,
    ...(style.signOff && signer !== undefined ? [`Signed-off-by: ${signer}`] : []),
  ];
  return `${paragraphs.join("\n\n")}\n`;
}

/** The first line of a text, without list and heading marks and our own prefixes. */
export function plain(text: string): string {
  const line =
    text
      .split("\n")
      .map((each) => each.trim())
      .find((each) => each !== "") ?? "";
  const bare = line
    .slice(0, 2_000)
    .replace(/[\p{Cc}\p{Cf}]/gu, " ")
    .replace(/\[FRONTEND\]/gi, "")
    .replace(/[*`]/g, "")
    .replace(/\s+/g, " ")
    .trim()
    .replace(/^(?:#{1,6}|[-+>]|\d{1,3}[.)])\s/, "")
    .trim();
  return (bare.endsWith("...") ? bare : bare.replace(/[.;:,]$/, "")) || "Change what was asked for";
}

function ticketOf({ ticket }: CommitStyle, { request, text }: CommitSubject, given: string): string {
  if (!ticket) return given;
  const named = [...`${text}\n${request}`.slice(0, 20_000).matchAll(/\b([A-Z][A-Z0-9]{1,9})-\d{1,7}\b/g)];
  const key = named.find(([, project]) => project === ticket.key)?.[0];
  return key === undefined ? given : `${ticket.before}${key}${ticket.after}`;
}

/** The project's prefix for the kind of change; none if it has no known one. */
function markFor({ marks }: CommitStyle, { files }: CommitSubject, text: string): string {
  const types = Object.keys(MARKS).filter((type) => MARKS[type]!.some((mark) => marks.includes(mark)));
  const type = marks.length === 0 ? "" : typeOf(types, text, files);
  return MARKS[type]?.find((mark) => marks.includes(mark)) ?? "";
}

function prefixOf({ conventional, areas }: CommitStyle, { files }: CommitSubject, text: string): string {
  if (!conventional) {
    const area = areaOf(areas, files);
    return area === undefined ? "" : `${area}: `;
  }
  const scope = areaOf(conventional.scopes, files) ?? (conventional.isScoped ? folderOf(files) : undefined);
  return `${typeOf(conventional.types, text, files)}${scope === undefined ? "" : `(${scope})`}: `;
}

const BY_FILES: readonly (readonly [type: string, of: RegExp])[] = [
  ["docs", /(?:^|\/)docs?\/|\.(?:md|mdx|rst|adoc)$/i],
  ["test", /(?:^|\/)(?:tests?|specs?|__tests__)\/|[._-](?:test|spec)\.\w{1,5}$|(?:^|\/)test_[^/]*$/i],
  ["ci", /^\.github\/workflows\/|^\.gitlab-ci\.yml$|^\.circleci\//],
];
const BY_WORDS: readonly (readonly [type: string, of: RegExp])[] = [
  ["revert", /^revert\b/i],
  [
    "fix",
    /\b(?:fix(?:e[sd])?|mend(?:s|ed)?|bugs?|crash(?:e[sd])?|repairs?|corrects?|wrong(?:ly)?|broken|regressions?|leaks?)\b/i,
  ],
  ["perf", /\b(?:faster|speed|performance|slow(?:ness)?)\b/i],
  ["refactor", /^(?:refactor|rename|extract|simplify|restructure|clean up|move)\b/i],
  ["docs", /^(?:document|describe|explain)\b|\b(?:readme|docs|documentation)\b/i],
  ["test", /^(?:test|cover)\b|\btests? for\b/i],
  ["chore", /^(?:bump|upgrade|update dependenc)/i],
];

/** Files say more than words; a type that the project never uses is not introduced. */
function typeOf(used: readonly string[], text: string, files: readonly string[]): string {
  const byFiles = BY_FILES.find(([type, of]) => used.includes(type) && files.length > 0 && files.every((file) => of.test(file)));
  const type = (byFiles ?? BY_WORDS.find(([, of]) => of.test(text)))?.[0] ?? "feat";
  if (used.includes(type) || type === "fix" || type === "feat") return type;
  return used.includes("chore") ? "chore" : "feat";
}

/** The longest scope in use that contains all changed files. */
function areaOf(names: readonly string[], files: readonly string[]): string | undefined {
  const isOf = (name: string) => (file: string) =>
    `/${file}`.includes(`/${name}/`) || `/${file}` === `/${name}` || `/${file}`.includes(`/${name}.`);
  if (files.length === 0) return undefined;
  return names.filter((name) => files.every(isOf(name))).sort((a, b) => b.length - a.length)[0];
}

/** Folder names that do not describe their content. */
const GENERAL = /^(?:src|lib|app|source|main|packages|crates|modules|apps|libs|tests?|internal|pkg|cmd)$/;

/** The innermost distinctive folder that contains all files, for projects whose commits always name one. */
function folderOf(files: readonly string[]): string | undefined {
  const [first = [], ...rest] = files.map((file) => file.split("/").slice(0, -1));
  const end = first.findIndex((part, index) => rest.some((other) => other[index] !== part));
  return first.slice(0, end < 0 ? undefined : end).findLast((part) => /^[\w.-]{1,40}$/.test(part) && !GENERAL.test(part));
}

/** Keeps the capitals of words such as `README` or `GitHub`. */
function inCase(text: string, lower: boolean): string {
  const [word = ""] = text.split(" ", 1);
  const isPlain = /^\p{L}[\p{Ll}'’-]*[.,;:!?]?$/u.test(word) && !(lower && word === "I");
  if (!isPlain) return text;
  return `${lower ? text[0]!.toLowerCase() : text[0]!.toUpperCase()}${text.slice(1)}`;
}

function shortened(text: string, room: number): string {
  if (text.length <= room) return text;
  const cut = text.slice(0, room + 1);
  const at = cut.lastIndexOf(" ");
  return text.slice(0, at > room / 2 ? at : room).replace(/[\s,;:.-]$/, "");
}

function wrapped(text: string): string {
  const lines: string[] = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1)!;
    if (line !== "" && line.length + word.length >= MAX_LENGTH) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines.join("\n");
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}

function mostCommon<T>(values: readonly T[]): T | undefined {
  const counts = new Map<string, { value: T; count: number }>();
  for (const value of values) {
    const key = JSON.stringify(value);
    counts.set(key, { value, count: (counts.get(key)?.count ?? 0) + 1 });
  }
  return [...counts.values()].sort((a, b) => b.count - a.count)[0]?.value;
}
