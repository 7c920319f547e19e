/**
 * Patterns in src that are not linear by themselves, each with the length of the longest text it is given and why that is so.
 * Rewrite a new one rather than adding it here. test/walls/patterns.test.ts times each at its worst.
 */
export const BOUNDED: readonly { file: string; source: string; most: number; because: string }[] = [
  ...[
    String.raw`\bmodel\b.*\b(?:not found|does not exist|not exist|is not available|unknown)|no such model|unknown model|not a valid model|^model: \S+$|deployment .*does not exist`,
  ].map((source) => ({
    file: "src/engine/models/failures.ts",
    source,
    most: 2_000,
    because: "a provider's words are cut where they are read (wire/failure.ts)",
  })),
  {
    file: "src/engine/wire/failure.ts",
    source:
      "context_length_exceeded|exceed_context_size|maximum context length|context (?:length|window|size)|prompt is too long|input is too long|too many (?:input )?tokens|reduce the length of|exceeds? the (?:available |maximum )?context|string_above_max_length|model_max_prompt_tokens_exceeded|tokens_limit_reached|request_too_large.*token",
    most: 2_000,
    because: "a provider's words and codes are cut where they are read",
  },
  {
    file: "src/engine/wire/parameters.ts",
    source: String.raw`'(max_tokens|max_completion_tokens)'[\s\S]*?[Uu]se '(max_tokens|max_completion_tokens)' instead`,
    most: 2_000,
    because: "a provider's words are cut where they are read (wire/failure.ts)",
  },
  ...["[^\\s\"'`(]*$"].map((source) => ({
    file: "src/tui/input/completion.ts",
    source,
    most: 1_000,
    because: "only the end of the line is looked at",
  })),
  ...[String.raw`(?:[\p{L}\p{N}_]+[^\p{L}\p{N}_]*|[^\p{L}\p{N}_]+)?$`, String.raw`\S*\s*$`].map((source) => ({
    file: "src/tui/input/editor.ts",
    source,
    most: 1_000,
    because: "only the end of what stands before the caret is looked at",
  })),
  ...[
    "^( {0,12})(`{3,}|~{3,})\\s*([^\\s`]*)[^`]*$",
    String.raw`^ {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$`,
    String.raw`^(\s*)([-*+]|\d{1,9}[.)])\s+(?:\[([ xX])\]\s+)?(.*)$`,
  ].map((source) => ({ file: "src/tui/markdown/blocks.ts", source, most: 4_000, because: "a longer line is a paragraph" })),
  {
    file: "src/tui/markdown/table.ts",
    source: String.raw`^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$`,
    most: 4_000,
    because: "a longer line is a paragraph",
  },
  {
    file: "src/tui/markdown/inline.ts",
    source: String.raw`^!?\[((?:[^[\]\\]|\\.|\[[^\]]*\])*)\]\(\s*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s+["'(][^)]*)?\)`,
    most: 2_000,
    because: "a longer link is shown as it stands",
  },
  { file: "src/skills/collect.ts", source: "[^a-z0-9]+$", most: 64, because: "the name was cut just before" },
  ...["([a-z]{3,}?)(?:ings?|ed)$", String.raw`([^aeiouls])\1$`, "([a-z]{3,})e$"].map((source) => ({
    file: "src/squads/words.ts",
    source,
    most: 40,
    because: "longer words have no stem",
  })),
  {
    file: "src/tools/web-fetch.ts",
    source: String.raw`<meta[^>]+charset\s*=\s*["']?([\w.:-]+)`,
    most: 2_048,
    because: "only the beginning of a page is asked for its encoding",
  },
];

/** Files whose patterns are all applied to a window of this many characters. */
export const WINDOWS: Readonly<Record<string, number>> = { "src/skills/inspect.ts": 1_000 };

/** Patterns that are composed at run time, with the code that does so and the worst results. */
export const COMPOSED: readonly {
  file: string;
  text: string;
  instances: readonly (readonly [source: string, flags: string])[];
}[] = [
  // The user's own rules for the rehearsal, which is not a model.
  { file: "src/engine/rehearsal/rules.ts", text: "pattern", instances: [] },
  // The model's own pattern, which runs in a thread that is terminated on timeout.
  { file: "src/tools/search/find-text.ts", text: "source", instances: [] },
  // Alternatives, each of which is judged by itself.
  { file: "src/git/test-patterns.ts", text: "patterns.map", instances: [] },
  {
    file: "src/lib/invocation.ts",
    text: "{WORDS}",
    instances: [
      [String.raw`(?<![\w./\\@-])(?:io|swarm)(?! clean\))(?= (?:(?:start|stop|restart)\b|--(?:help|daemon|version)\b))`, "g"],
    ],
  },
  {
    file: "src/shell/download-and-run.ts",
    text: "{letter}",
    instances: [
      ["^(?:-[a-zA-Z#]*O|--output|--output-document|--out|-[oO]ut[fF]ile|>)$", ""],
      ["^(?:-o|--(?:output|output-document|out)=)(?=[^=])(.+)$", ""],
    ],
  },
  {
    file: "src/squads/choose.ts",
    text: "{escaped}",
    instances: [
      [String.raw`^\s*(?:B\.A\.\s*[,:]|(?:ask|tell) B\.A\. (?:to|that|about)\b)|(?:^|\s)@B\.A\.(?!\w| \d)`, "i"],
      [String.raw`^\s*(?:[Aa]sk|[Tt]ell|[Ll]et|[Hh]ave) B\.A\.(?!\w| \d)`, ""],
    ],
  },
  {
    file: "src/project/test-commands.ts",
    text: "VALUED.source",
    instances: [],
  },
  { file: "src/store/squad-decisions.ts", text: "word.replace", instances: [[String.raw`(?<![\p{L}\p{N}])word`, "u"]] },
  {
    file: "src/swarm/pipeline/conditions.ts",
    text: "FRONTEND_WORDS",
    instances: [[String.raw`(?<![\p{L}\p{N}_-])(?:ui|dark\s+mode|landing\s+page)(?![\p{L}\p{N}_-])`, "iu"]],
  },
  {
    file: "src/swarm/review/verdict.ts",
    text: "{word}",
    instances: [[String.raw`(?:(?:~~|❌|🚫|(?<!\p{L})(?:no|non)\b)[^\p{L}~❌🚫]*|\b(?:un|dis)-?)approved`, "u"]],
  },
  {
    file: "src/swarm/review/verdict.ts",
    text: "{NEGATIONS_ELSEWHERE})$",
    instances: [[String.raw`(?<![\p{L}\p{N}])(?:not|un|far from|nicht|не)(?![\p{L}\p{N}])|[不未没沒]|ない|않|아니`, "u"]],
  },
  {
    file: "src/swarm/review/verdict.ts",
    text: "{NEGATIONS_ELSEWHERE})|^no",
    instances: [[String.raw`(?:(?<![\p{L}\p{N}])(?:not|far from|nicht|не)|^no|[不未没沒])[^\p{L}\p{N}]*$`, "u"]],
  },
  {
    file: "src/swarm/review/verdict.ts",
    text: "{spacedWord}",
    instances: [[String.raw`(?<![\p{L}\p{N}])all passed(?![\p{L}\p{N}])`, "u"]],
  },
];
