import type createReader from "markdown-it";

/** Converts TeX to MathML; undefined if it is not valid TeX. */
export type Typeset = (tex: string, isBlock: boolean) => string | undefined;

/** Longer formulas are shown as source, because typesetting them could take too long. */
const MOST = 4_000;

/** Whether a text may contain a formula, so that the typesetting code is loaded only when needed. */
export const mayHoldMaths = (text: string): boolean => /\$\S|\$\$|\\\(|\\\[|```\s*math/.test(text);

/**
 * Parses formulas between `$…$`, `$$…$$`, `\(…\)` and `\[…\]`, and in code blocks named `math`. Single dollars count only if
 * there are no spaces just inside them and no letters or digits just outside, so prices and shell variables are left alone.
 */
export function maths(markdownIt: ReturnType<typeof createReader>): void {
  markdownIt.inline.ruler.before("escape", "maths", (state, silent) => {
    const [open, close] = delimitersAt(state.src, state.pos) ?? [];
    if (open === undefined || close === undefined) return false;
    const start = state.pos + open.length;
    const end = open === "$" ? endOfDollar(state.src, start) : state.src.indexOf(close, start);
    if (end < 0 || end > state.posMax || state.src.slice(start, end).trim() === "") return false;
    if (open === "$" && /\w/.test(state.src[state.pos - 1] ?? "")) return false;
    if (!silent) {
      const token = state.push("maths", "", 0);
      token.content = state.src.slice(start, end).trim();
      token.markup = open;
    }
    state.pos = end + close.length;
    return true;
  });
  markdownIt.block.ruler.before(
    "fence",
    "maths",
    (state, startLine, endLine, silent) => {
      const lineAt = (line: number) => state.src.slice((state.bMarks[line] ?? 0) + (state.tShift[line] ?? 0), state.eMarks[line]);
      const first = lineAt(startLine).trim();
      const close = first.startsWith("$$") ? "$$" : first.startsWith("\\[") ? "\\]" : undefined;
      if (close === undefined) return false;
      const lines = [first.slice(2)];
      let line = startLine;
      while (!(lines.at(-1) ?? "").trimEnd().endsWith(close)) {
        line += 1;
        if (line >= endLine) return false;
        lines.push(lineAt(line));
      }
      const content = lines.join("\n").trimEnd().slice(0, -close.length).trim();
      if (content === "" || content.includes(close)) return false;
      if (silent) return true;
      const token = state.push("maths", "", 0);
      Object.assign(token, { block: true, content, markup: first.slice(0, 2), map: [startLine, line + 1] });
      state.line = line + 1;
      return true;
    },
    { alt: ["paragraph", "blockquote", "list"] },
  );
  const { escapeHtml } = markdownIt.utils;
  const typeset = (tex: string, isBlock: boolean, env: unknown) =>
    tex.length > MOST ? undefined : (env as { typeset?: Typeset } | undefined)?.typeset?.(tex, isBlock);
  markdownIt.renderer.rules.maths = (tokens, index, _options, env) => {
    const { content = "", markup = "", block = false } = tokens[index] ?? {};
    const isBlock = markup === "$$" || markup === "\\[";
    const shown = typeset(content, isBlock, env) ?? `<code>${escapeHtml(content)}</code>`;
    return block ? `<p>${shown}</p>\n` : shown;
  };
  const { fence } = markdownIt.renderer.rules;
  markdownIt.renderer.rules.fence = (tokens, index, options, env, self) => {
    const token = tokens[index];
    const shown = token?.info.trim() === "math" ? typeset(token.content.trim(), true, env) : undefined;
    if (shown !== undefined) return `<p>${shown}</p>\n`;
    return fence?.(tokens, index, options, env, self) ?? "";
  };
}

function delimitersAt(text: string, at: number): [string, string] | undefined {
  const two = text.slice(at, at + 2);
  if (two === "$$") return ["$$", "$$"];
  if (two === "\\(") return ["\\(", "\\)"];
  if (two === "\\[") return ["\\[", "\\]"];
  return two[0] === "$" && /\S/.test(two[1] ?? "") ? ["$", "$"] : undefined;
}

function endOfDollar(text: string, start: number): number {
  const end = text.indexOf("$", start);
  const isClosed = end >= 0 && /\S/.test(text[end - 1] ?? "") && !/[\w$]/.test(text[end + 1] ?? "");
  return isClosed && !text.slice(start, end).includes("\n\n") ? end : -1;
}
