import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import MarkdownIt from "markdown-it";
import { readTokens, type Token } from "./code-tokens.ts";
import { maths, type Typeset } from "./maths.ts";

const LANGUAGES = { bash, c, cpp, css, diff, go, java, javascript, json, markdown, python, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

/** Longer code is not highlighted, because that would take too long. */
const MOST_COLOURED = 60_000;

const markdownIt = MarkdownIt({
  html: false,
  linkify: true,
  highlight: (code, language) =>
    code.length <= MOST_COLOURED && hljs.getLanguage(language)
      ? hljs.highlight(code, { language, ignoreIllegals: true }).value
      : "",
});
maths(markdownIt);
const BOXES: Record<string, string> = { "[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ " };
markdownIt.core.ruler.push("task boxes", ({ tokens }) => {
  for (const [index, token] of tokens.entries()) {
    const text = token.children?.[0];
    const box = text?.type === "text" ? BOXES[text.content.slice(0, 4)] : undefined;
    if (text && box !== undefined && tokens[index - 2]?.type === "list_item_open") text.content = box + text.content.slice(4);
  }
});
// Images are never loaded: an image becomes a link to its source.
markdownIt.renderer.rules.image = (tokens, index) => {
  const token = tokens[index];
  const safe = markdownIt.utils.escapeHtml;
  const source = String(token?.attrGet("src") ?? "");
  const words = `image: ${token?.content || "without words"}`;
  return `<a href="${safe(source)}">${safe(words)}</a>`;
};

/** Fences a text that is nothing but JSON, such as an agent's list of tasks: as prose it would be one long unreadable line. */
function fenceJson(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return `~~~json\n${JSON.stringify(JSON.parse(text), null, 2)}\n~~~\n`;
  } catch {
    // It only looks like JSON.
    return text;
  }
}

/** Renders Markdown. `typeset` converts formulas; without it, they are shown as source. */
export const renderMarkdown = (text: string, typeset?: Typeset): string => markdownIt.render(fenceJson(text), { typeset });

/** Highlights code line by line; undefined if it is too long or its language is unknown. */
export const colourCode = (code: string, language: string): Token[][] | undefined =>
  code.length <= MOST_COLOURED && hljs.getLanguage(language)
    ? readTokens(hljs.highlight(code, { language, ignoreIllegals: true }).value)
    : undefined;
