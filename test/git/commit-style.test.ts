import { expect, test } from "vitest";
import { type CommitSubject, learnCommitStyle, wordCommit } from "../../src/git/commit-style.ts";

const ADA = "Ada <ada@example.org>";
const signed = (subject: string) => `${subject}\n\nSigned-off-by: ${ADA}`;
const CONVENTIONAL = ["feat(cli): add a flag", "fix: stop the leak", "docs: say more", "chore(deps): bump x", "Initial commit"];
const KERNEL = ["net/http: reject bad headers", "fs: fix a leak", "net: add a test", "fs: speed up", "all: gofmt"];
const JIRA = ["SHOP-1: Add a cart", "SHOP-2: Empty the cart", "SHOP-31: Pay"];
const BRACKETS = ["[SHOP-1] Add a cart", "[SHOP-2] Empty the cart", "OPS-1 Move", "[SHOP-4] Pay"];
const PLAIN = ["Add a cart", "Empty the cart", "Pay", "readme"];
const LOWER = ["add a cart", "empty the cart", "pay at last"];
const STOPS = ["Added a cart.", "Emptied the cart.", "Paid."];
const SHORTCODES = [":sparkles: Add a cart", ":bug: Empty the cart", ":art: Order the shelves", ":sparkles: Pay"];
const EMOJI = ["✨ add a cart", "🐛 empty the cart", "📝 say more", "⬆️ bump x"];
const MIXED = ["✨ feat(cart): add it", "🐛 fix(cart): empty it", "✨ feat(till): pay"];
const TAGS = ["ENH: add a cart", "BUG: empty the cart", "DOC: say more (#3)", "MAINT: tidy up"];
const BRACKET_TAGS = ["[FIX] cart: empty it", "[IMP] cart: add it", "[FIX] till: count"];
const SCOPED = ["feat(cart): add it", "fix(till): count", "feat(@shop/wishes): begin"];
const PULLS = ["Add a cart (#12)", "Empty the cart (#14)", "Pay (#15)"];
const FEW = ["feat: begin", "fix: go on"];

const about = (text: string, more: Partial<CommitSubject> = {}): CommitSubject => ({
  text,
  request: "",
  files: ["src/a.ts"],
  ...more,
});

test.each<[kind: string, log: string[], subject: CommitSubject, message: string]>([
  ["conventional", CONVENTIONAL, about("Add a greeting"), "feat: add a greeting"],
  ["conventional, a fix", CONVENTIONAL, about("Fix the crash on start."), "fix: fix the crash on start"],
  [
    "conventional, only documents",
    CONVENTIONAL,
    about("Add a chapter", { files: ["docs/a.md", "README.md"] }),
    "docs: add a chapter",
  ],
  ["conventional, a type not in use", CONVENTIONAL, about("Rename the widget"), "chore: rename the widget"],
  [
    "conventional, a scope in use",
    CONVENTIONAL,
    about("Add a flag", { files: ["src/cli/a.ts", "src/cli.ts"] }),
    "feat(cli): add a flag",
  ],
  ["conventional, two scopes", CONVENTIONAL, about("Add a flag", { files: ["src/cli/a.ts", "b.ts"] }), "feat: add a flag"],
  [
    "conventional, files without a matching type",
    ["feat: a", "fix: b", "feat: c"],
    about("Add a chapter", { files: ["docs/a.md"] }),
    "feat: add a chapter",
  ],
  ["conventional already", CONVENTIONAL, about("perf(core): cache It"), "perf(core): cache It"],
  ["a name in capitals", CONVENTIONAL, about("README says more"), "docs: README says more"],
  [
    "by folder",
    KERNEL,
    about("Reject long headers", { files: ["src/net/http/a.go", "src/net/http/b.go"] }),
    "net/http: reject long headers",
  ],
  [
    "conventional since a while",
    [...CONVENTIONAL, ...CONVENTIONAL, ...CONVENTIONAL, ...CONVENTIONAL, ...Array.from({ length: 40 }, () => "Add a cart.")],
    about("Add a greeting"),
    "feat: add a greeting",
  ],
  [
    "conventional long ago",
    [...Array.from({ length: 20 }, (_, at) => `Add cart ${at}`), ...Array.from({ length: 40 }, () => "feat: add a cart")],
    about("Add a greeting"),
    "Add a greeting",
  ],
  [
    "a scope that the newest commits do not have",
    [...Array.from({ length: 20 }, () => "fix: stop the leak"), "feat(cli): add a flag", "docs: say more"],
    about("Add a flag", { files: ["src/cli/a.ts"] }),
    "feat(cli): add a flag",
  ],
  ["by folder, none in common", KERNEL, about("Reject it", { files: ["fs/a.go", "net/b.go"] }), "reject it"],
  ["ticket in the request", JIRA, about("add a wish list", { request: "As SHOP-77 says" }), "SHOP-77: Add a wish list"],
  ["ticket in brackets", BRACKETS, about("Add it", { request: "[SHOP-8] wishes" }), "[SHOP-8] Add it"],
  ["another project's ticket", JIRA, about("Add it", { request: "UTF-8 and ISO-9001" }), "Add it"],
  ["no ticket is named", JIRA, about("Add it"), "Add it"],
  ["a key where none are used", PLAIN, about("Encode as UTF-8"), "Encode as UTF-8"],
  ["sentences", PLAIN, about("add a greeting."), "Add a greeting"],
  ["lower case", LOWER, about("Add a greeting"), "add a greeting"],
  ["full stops", STOPS, about("Add a greeting"), "Add a greeting."],
  ["gitmoji by their codes", SHORTCODES, about("Fix the total"), ":bug: Fix the total"],
  ["gitmoji, a kind without one in the log", SHORTCODES, about("Say more", { files: ["docs/a.md"] }), ":sparkles: Say more"],
  ["gitmoji as letters", EMOJI, about("Describe the till", { files: ["README.md"] }), "📝 describe the till"],
  ["gitmoji, written already", EMOJI, about("🚀 Deploy it"), "🚀 Deploy it"],
  ["gitmoji before a conventional type", MIXED, about("Fix the sum", { files: ["src/till/a.ts"] }), "🐛 fix(till): fix the sum"],
  ["tags in capitals", TAGS, about("Fix the total"), "BUG: fix the total"],
  ["tags in capitals, something new", TAGS, about("Add a wish list"), "ENH: add a wish list"],
  ["tags in brackets", BRACKET_TAGS, about("Fix the sum", { files: ["till/a.py"] }), "[FIX] till: fix the sum"],
  ["one emoji makes no convention", ["✨ Add a cart", ...PLAIN], about("Fix it"), "Fix it"],
  [
    "always with a scope",
    SCOPED,
    about("Add a page", { files: ["packages/guest/src/a.ts", "packages/guest/b.ts"] }),
    "feat(guest): add a page",
  ],
  [
    "always with a scope, none in common",
    SCOPED,
    about("Add a page", { files: ["packages/a/x.ts", "packages/b/x.ts"] }),
    "feat: add a page",
  ],
  ["a scope with an owner", SCOPED, about("Add it", { files: ["@shop/wishes/a.ts"] }), "feat(@shop/wishes): add it"],
  ["pull request numbers are not invented", PULLS, about("Add a wish list"), "Add a wish list"],
  ["too few to tell", FEW, about("Add a greeting"), "Add a greeting"],
  ["nothing at all", [], about("add a greeting"), "Add a greeting"],
  ["our own marks", PLAIN, about("## [FRONTEND] **Add** a `button`\n\nT1 of r_1"), "Add a button"],
  ["a list's entry", PLAIN, about("\n 1. Add a button"), "Add a button"],
  ["hostile letters", PLAIN, about("Add\u001b[31m a\u202e word\u0000"), "Add [31m a word"],
  ["only marks", PLAIN, about("***"), "Change what was asked for"],
  ["sign-off", PLAIN.map(signed), about("Add it"), signed("Add it")],
  ["sign-off by few", [...PLAIN, signed("One")], about("Add it"), "Add it"],
  ["a forged sign-off", PLAIN, about("Add it\nSigned-off-by: Eve <e@e>"), "Add it"],
  [
    "too long",
    CONVENTIONAL,
    about(`Add ${"a word and ".repeat(9)}stop`),
    `feat: add a word and a word and a word and a word and a word and a word\n\nadd ${"a word and ".repeat(6)}a\nword and a word and a word and stop`,
  ],
])("a message is worded as the project words its own: %s", (_, log, subject, message) => {
  const worded = wordCommit(learnCommitStyle(log), subject, { signer: ADA });
  expect(worded).toBe(`${message}\n`);
  expect(worded.split("\n")[0]!.length).toBeLessThanOrEqual(72);
});

test("a commit without a known name is not signed off", () => {
  expect(wordCommit(learnCommitStyle(PLAIN.map(signed)), about("Add it"))).toBe("Add it\n");
});
