/** What a unified difference (git's, with renames) says of one file. */
export interface FileChange {
  path: string;
  /** Where it was before, if that is another path. */
  from: string | undefined;
  isNew: boolean;
  isDeleted: boolean;
  /** Git shows no lines of it: it holds a zero byte, or .gitattributes says so. */
  isUnreadable: boolean;
  added: string[];
  removed: string[];
  /** The same lines, as they stand together. */
  blocks: Block[];
}

/** Lines that were changed in one place. */
export interface Block {
  added: string[];
  removed: string[];
  /** Whether they stand among tests beside the code, as far as git shows what stands around them. */
  isAmongTests: boolean;
}

/** Long lines are data or compiled code, and cost time. */
const LONGEST_LINE = 2_000;
/** Where tests begin in a file of code. */
const TESTS_BEGIN = /#\[cfg\((?:all\(|any\()?test\b|^\s{0,200}(?:pub\s)?mod\s{1,5}tests?\b|\bimport\.meta\.vitest\b/;

export function changedFiles(diff: string): FileChange[] {
  const files: FileChange[] = [];
  let file: FileChange | undefined;
  let block: Block | undefined;
  let inHunk = false;
  let isAmongTests = false;
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
      isAmongTests = TESTS_BEGIN.test(line.replace(/^@@ .{0,60}? @@ ?/, ""));
    } else if (!inHunk) readHeader(file, line);
    else if (line.startsWith("+") || line.startsWith("-")) {
      const text = line.slice(1, LONGEST_LINE);
      const side = line.startsWith("+") ? "added" : "removed";
      isAmongTests ||= TESTS_BEGIN.test(text);
      if (!block) {
        block = { added: [], removed: [], isAmongTests };
        file.blocks.push(block);
      }
      block.isAmongTests ||= isAmongTests;
      block[side].push(text);
      file[side].push(text);
    } else if (!line.startsWith("\\")) {
      block = undefined;
      isAmongTests ||= TESTS_BEGIN.test(line.slice(1, LONGEST_LINE));
    }
  }
  return files;
}

function readHeader(file: FileChange, line: string): void {
  if (line.startsWith("deleted file mode")) file.isDeleted = true;
  else if (line.startsWith("new file mode")) file.isNew = true;
  else if (line.startsWith("Binary files ")) file.isUnreadable = true;
  else if (line.startsWith("rename from ")) file.from = line.slice("rename from ".length).replace(/^"|"$/g, "");
  else if (/^rename to |^\+\+\+ "?b\//.test(line)) file.path = line.replace(/^rename to |^\+\+\+ "?b\//, "").replace(/"$/, "");
}

/** Of `diff --git a/x b/x`. A name with a space is told again below, unless the file is empty or gone. */
function pathIn(line: string): string {
  const rest = line.slice("diff --git ".length);
  const half = rest.slice(rest.length / 2 + 1);
  return half.replace(/^"?b\//, "").replace(/"$/, "");
}
