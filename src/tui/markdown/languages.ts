export interface Grammar {
  words: ReadonlySet<string>;
  /** Matches the start of a comment that ends with its line. */
  comment?: RegExp;
  /** Strings and comments that may span several lines. */
  blocks: readonly { begin: string; close: string; isComment: boolean }[];
  anyCase?: boolean;
  isMarkup?: boolean;
  isDiff?: boolean;
}

const C_COMMENT = { begin: "/*", close: "*/", isComment: true };
const SLASHES = /^\/\//;
const HASH = /^#/;
const set = (words: string) => new Set(words.split(" "));

const SCRIPT: Grammar = {
  words: set(
    "abstract as async await break case catch class const continue declare default delete do else enum export extends false finally for from function get if implements import in infer instanceof interface is keyof let namespace new null of private protected public readonly return satisfies set static super switch this throw true try type typeof undefined var void while yield",
  ),
  comment: SLASHES,
  blocks: [C_COMMENT, { begin: "`", close: "`", isComment: false }],
};
const PYTHON: Grammar = {
  words: set(
    "False None True and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return self try while with yield",
  ),
  comment: HASH,
  blocks: [
    { begin: '"""', close: '"""', isComment: false },
    { begin: "'''", close: "'''", isComment: false },
  ],
};
const SHELL: Grammar = {
  words: set(
    "if then else elif fi for while until do done case esac in function select return exit export local readonly declare set unset source alias cd echo printf test trap sudo",
  ),
  comment: /^#(?!\{)/,
  blocks: [],
};
const C_LIKE: Grammar = {
  words: set(
    "abstract auto bool boolean break byte case catch char class const constexpr continue default delete do double else enum explicit export extends extern false final finally float for foreach friend goto if implements import in inline instanceof int interface internal let long namespace new null nullptr object operator out override package private protected public readonly record ref return sealed short signed sizeof static string struct super switch template this throw throws true try typedef typename union unsigned using val var virtual void volatile when where while fun",
  ),
  comment: SLASHES,
  blocks: [C_COMMENT],
};
const GO: Grammar = {
  words: set(
    "any bool break byte case chan const continue default defer else error fallthrough false float64 for func go goto if import int int64 interface iota map nil package range return rune select string struct switch true type uint var",
  ),
  comment: SLASHES,
  blocks: [C_COMMENT, { begin: "`", close: "`", isComment: false }],
};
const RUST: Grammar = {
  words: set(
    "as async await bool box break const continue crate dyn else enum extern f64 false fn for i32 i64 if impl in let loop match mod move mut pub ref return Self self static str struct super trait true type u32 u64 u8 unsafe use usize where while",
  ),
  comment: SLASHES,
  blocks: [C_COMMENT],
};
const SQL: Grammar = {
  words: set(
    "select from where and or not null is in like insert into values update set delete create table index view drop alter add primary key foreign references unique default check join left right inner outer full on as group by order having limit offset union all distinct case when then else end begin commit rollback transaction with returning text integer exists",
  ),
  comment: /^--/,
  blocks: [C_COMMENT],
  anyCase: true,
};
const RUBY: Grammar = {
  words: set(
    "alias and begin break case class def do else elsif end ensure false for if in module next nil not or raise redo require rescue retry return self super then true undef unless until when while yield",
  ),
  comment: HASH,
  blocks: [],
};
const DATA: Grammar = { words: set("true false null yes no on off"), comment: HASH, blocks: [] };
const JSON_DATA: Grammar = { words: set("true false null"), comment: SLASHES, blocks: [C_COMMENT] };
const CSS: Grammar = { words: set("@media @import @font-face @keyframes important"), blocks: [C_COMMENT] };
const MARKUP: Grammar = { words: set(""), blocks: [{ begin: "<!--", close: "-->", isComment: true }], isMarkup: true };
const DOCKER: Grammar = {
  words: set("FROM RUN CMD COPY ADD ENV ARG WORKDIR EXPOSE ENTRYPOINT USER VOLUME LABEL AS HEALTHCHECK SHELL"),
  comment: HASH,
  blocks: [],
};

const NAMES: readonly (readonly [Grammar, string])[] = [
  [SCRIPT, "js jsx ts tsx mjs cjs mts cts javascript typescript vue svelte"],
  [PYTHON, "py python python3"],
  [SHELL, "sh bash zsh fish shell console shellsession powershell ps1 makefile make"],
  [C_LIKE, "c h cc cpp cxx hpp c++ cs csharp java kotlin kt swift scala dart php groovy objc"],
  [GO, "go golang"],
  [RUST, "rs rust"],
  [SQL, "sql sqlite postgres mysql"],
  [RUBY, "rb ruby elixir ex lua perl"],
  [DATA, "yaml yml toml ini conf env properties"],
  [JSON_DATA, "json jsonc json5"],
  [CSS, "css scss less"],
  [MARKUP, "html xml svg"],
  [DOCKER, "dockerfile docker"],
  [{ words: set(""), blocks: [], isDiff: true }, "diff patch"],
];
const BY_NAME: ReadonlyMap<string, Grammar> = new Map(
  NAMES.flatMap(([grammar, names]) => names.split(" ").map((name) => [name, grammar] as const)),
);

/** The grammar of a language; undefined if its code is shown without highlighting. */
export function grammarOf(language: string): Grammar | undefined {
  return BY_NAME.get(language.toLowerCase());
}
