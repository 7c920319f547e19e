import { createMarkdown } from "./markdown.ts";
import { cutIntoPieces, MAX_TEXT } from "./pieces.ts";
import { htmlOf, plainOf, type Run } from "./runs.ts";

/** One Telegram message: its text as HTML, and as plain text if Telegram refuses the HTML. */
export interface Piece {
  html: string;
  plain: string;
}

export interface AttachedFile {
  name: string;
  content: string;
}

/** An answer as Telegram can show it. */
export interface Shaped {
  pieces: Piece[];
  files: AttachedFile[];
}

/** Longer code is easier to read as a file. */
const LONG_CODE = 3_000;

const ENDINGS: Record<string, string> = {
  javascript: "js",
  typescript: "ts",
  python: "py",
  ruby: "rb",
  rust: "rs",
  shell: "sh",
  bash: "sh",
  markdown: "md",
  yaml: "yaml",
};

/** Converts an answer from markdown to messages and files. */
export function createShaper(): (markdown: string) => Shaped {
  const read = createMarkdown();
  return (markdown) => {
    const files: AttachedFile[] = [];
    const runs: Run[] = [];
    for (const { runs: own, lines } of read(markdown)) {
      const shown = own.map((run) => (run.pre !== undefined && run.text.length > LONG_CODE ? asFile(run, files) : run));
      const bothQuoted = runs.at(-1)?.quote && shown[0]?.quote;
      if (runs.length > 0) runs.push({ text: "\n".repeat(lines), gap: true, ...(bothQuoted && { quote: true }) });
      runs.push(...shown);
    }
    return { pieces: cutIntoPieces(runs, MAX_TEXT).map(pieceOf), files };
  };
}

/** Telegram refuses a message with half a surrogate pair. */
export const pieceOf = (runs: readonly Run[]): Piece => ({
  html: htmlOf(runs).toWellFormed(),
  plain: plainOf(runs).toWellFormed(),
});

/** Text that is shown literally. */
export function plainPieces(text: string): Piece[] {
  return cutIntoPieces([{ text }]).map(pieceOf);
}

function asFile(run: Run, files: AttachedFile[]): Run {
  const ending = ENDINGS[run.pre ?? ""] ?? (/^[a-z0-9]{1,8}$/.test(run.pre ?? "") ? run.pre : "txt");
  const name = `code-${files.length + 1}.${ending}`;
  files.push({ name, content: `${run.text}\n` });
  return { text: `[${run.text.split("\n").length} lines: ${name}]`, italic: true };
}
