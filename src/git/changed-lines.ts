/** The changes to one file in a unified diff (git's format, with renames). */
export interface FileChange {
  path: string;
  /** The old path of a renamed file. */
  from: string | undefined;
  isNew: boolean;
  isDeleted: boolean;
  /** Git shows no lines: the file contains a zero byte, or .gitattributes marks it as binary. */
  isUnreadable: boolean;
  added: string[];
  removed: string[];
  /** The same lines, grouped by location. */
  blocks: Block[];
}

/** Adjacent changed lines. */
export interface Block {
  added: string[];
  removed: string[];
  /** Whether they are inside inline tests, as far as the diff's context shows. */
  isAmongTests: boolean;
  /** Whether they follow a line that was typed in an example of the documentation, and so are its expected answer. */
  isAnswer: boolean;
}

/** Longer lines are data or compiled code, and slow to match. */
const MAX_LINE = 2_000;
/** Starts the inline tests of a source file. */
const TESTS_BEGIN = /#\[cfg\((?:all\(|any\()?test\b|^\s{0,200}(?:pub\s)?mod\s{1,5}tests?\b|\bimport\.meta\.vitest\b/;

const TYPED = /^\s{0,200}(?:>>>|\.\.\.|iex(?:\(\d{1,5}\))?>)\s/;

export function changedFiles(diff: string): FileChange[] {
  const files: FileChange[] = [];
  let file: FileChange | undefined;
  let block: Block | undefined;
  let inHunk = false;
  let isAmongTests = false;
  let isTyped = false;
  for (const line of diff.split("\n")) {
    if (line.startsWith("diff --git ")) {
      const kind = { isNew: false, isDeleted: false, isUnreadable: false };
      file = { path: pathIn(line), from: undefined, ...kind, added: [], removed: [], blocks: [] };
      files.push(file);
      inHunk = false;
    } else if (!file) continue;
    else if (line.startsWith("@@")) {
      inHunk = true;
      block = undefined;
      isTyped = false;
      isAmongTests = TESTS_BEGIN.test(line.replace(/^@@ .{0,60}? @@ ?/, ""));
    } else if (!inHunk) readHeader(file, line);
    else if (line.startsWith("+") || line.startsWith("-")) {
      const text = line.slice(1, MAX_LINE);
      const side = line.startsWith("+") ? "added" : "removed";
      isAmongTests ||= TESTS_BEGIN.test(text);
      if (!block) {
        block = { added: [], removed: [], isAmongTests, isAnswer: isTyped };
        file.blocks.push(block);
      }
      block.isAmongTests ||= isAmongTests;
      block[side].push(text);
      file[side].push(text);
    } else if (!line.startsWith("\\")) {
      block = undefined;
      isTyped = TYPED.test(line.slice(1, MAX_LINE));
      isAmongTests ||= TESTS_BEGIN.test(line.slice(1, MAX_LINE));
    }
  }
  return files;
}

function readHeader(file: FileChange, line: string): void {
  if (line.startsWith("deleted file mode")) file.isDeleted = true;
  else if (line.startsWith("new file mode")) file.isNew = true;
  else if (line.startsWith("Binary files ")) file.isUnreadable = true;
  else if (line.startsWith("rename from ")) file.from = line.slice("rename from ".length).replace(/^"|"$/g, "");
  else if (/^rename to |^\+\+\+ "?b\//.test(line))
    file.path = line.replace(/^rename to |^\+\+\+ "?b\//, "").replace(/["\t]$/, "");
}

/** The path in `diff --git a/x b/x`. A later header line corrects names with a space, unless the file is empty or deleted. */
function pathIn(line: string): string {
  const rest = line.slice("diff --git ".length);
  const half = rest.slice(rest.length / 2 + 1);
  return half.replace(/^"?b\//, "").replace(/"$/, "");
}
