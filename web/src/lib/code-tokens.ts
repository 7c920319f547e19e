/** A piece of a line, with its highlighting class. */
export type Token = readonly [text: string, kind: string];

const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

/** Parses the highlighter's HTML back into pieces of text, line by line, so that no HTML is ever inserted. */
export function readTokens(html: string): Token[][] {
  const lines: Token[][] = [[]];
  const open: string[] = [];
  for (const [piece] of html.matchAll(/<span class="[^"]*">|<\/span>|[^<]+/g)) {
    if (piece === "</span>") {
      open.pop();
      continue;
    }
    if (piece.startsWith("<span")) {
      open.push(piece.slice('<span class="'.length, -2));
      continue;
    }
    const text = piece.replace(/&(?:amp|lt|gt|quot|#x27);/g, (entity) => ENTITIES[entity] ?? entity);
    for (const [index, part] of text.split("\n").entries()) {
      if (index > 0) lines.push([]);
      if (part !== "") lines.at(-1)?.push([part, open.at(-1) ?? ""]);
    }
  }
  return lines;
}

const LANGUAGES: Record<string, string> = {
  ...{ js: "javascript", mjs: "javascript", cjs: "javascript", jsx: "javascript", ts: "typescript", tsx: "typescript" },
  ...{ py: "python", rs: "rust", go: "go", java: "java", c: "c", h: "c", cpp: "cpp", hpp: "cpp", cc: "cpp", css: "css" },
  ...{ sh: "bash", bash: "bash", json: "json", md: "markdown", sql: "sql", html: "xml", xml: "xml", vue: "xml", svg: "xml" },
  ...{ yml: "yaml", yaml: "yaml" },
};

/** The language of a file by its extension, if it can be highlighted. */
export const languageOf = (path: string): string | undefined => LANGUAGES[/\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? ""];
