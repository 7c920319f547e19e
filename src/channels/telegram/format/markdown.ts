import MarkdownIt, { type Token } from "markdown-it";
import type { Run } from "./runs.ts";
import { tableText } from "./table.ts";

/** A paragraph, list item or code block. */
export interface Block {
  runs: Run[];
  /** How many line breaks precede it. */
  lines: 1 | 2;
}

type Marks = Omit<Run, "text" | "gap" | "pre">;

/** The link targets that a chat may contain. */
const LINKS = /^(?:https?:\/\/|mailto:|tg:\/\/)/i;

/** Parses markdown into blocks of styled text. HTML in it is plain text. */
export function createMarkdown(): (text: string) => Block[] {
  const parser = new MarkdownIt({ html: false, linkify: false });
  return (text) => readBlocks(parser.parse(text, {}));
}

interface Lists {
  /** The number of the next item; undefined in a bullet list. */
  next: number | undefined;
}

function readBlocks(tokens: readonly Token[]): Block[] {
  const blocks: Block[] = [];
  const lists: Lists[] = [];
  let quotes = 0;
  let heading = false;
  let prefix: string | undefined;
  let table: string[][] | undefined;

  const add = (runs: Run[]) => {
    const indent = "  ".repeat(Math.max(0, lists.length - 1));
    const isItem = prefix !== undefined;
    const lead = isItem ? `${indent}${prefix}` : lists.length > 0 ? `${indent}  ` : "";
    prefix = undefined;
    const quoted = quotes > 0 ? { quote: true } : {};
    const led = lead === "" || runs[0]?.pre !== undefined ? runs : [{ text: lead }, ...runs];
    const close = lists.length > 0 && blocks.length > 0 && isItem && blocks.at(-1)!.runs[0]?.pre === undefined && !firstItem;
    firstItem = false;
    blocks.push({ runs: led.map((run) => ({ ...run, ...quoted })), lines: close ? 1 : 2 });
  };
  let firstItem = false;

  for (const token of tokens) {
    switch (token.type) {
      case "bullet_list_open":
      case "ordered_list_open":
        if (lists.length === 0) firstItem = true;
        lists.push({ next: token.type === "ordered_list_open" ? Number(token.attrGet("start") ?? 1) : undefined });
        break;
      case "bullet_list_close":
      case "ordered_list_close":
        lists.pop();
        break;
      case "list_item_open": {
        const list = lists.at(-1)!;
        prefix = list.next === undefined ? "• " : `${list.next}. `;
        if (list.next !== undefined) list.next += 1;
        break;
      }
      case "blockquote_open":
        quotes += 1;
        break;
      case "blockquote_close":
        quotes -= 1;
        break;
      case "heading_open":
        heading = true;
        break;
      case "heading_close":
        heading = false;
        break;
      case "fence":
      case "code_block":
        add([{ text: token.content.replace(/\n$/, "") || " ", pre: languageOf(token.info) }]);
        break;
      case "hr":
        add([{ text: "———" }]);
        break;
      case "table_open":
        table = [];
        break;
      case "tr_open":
        table?.push([]);
        break;
      case "table_close":
        if (table) add([{ text: tableText(table), pre: "" }]);
        table = undefined;
        break;
      case "inline":
        if (table)
          table.at(-1)?.push(
            inlineRuns(token.children ?? [], {})
              .map(({ text }) => text)
              .join(""),
          );
        else add(inlineRuns(token.children ?? [], heading ? { bold: true } : {}));
        break;
    }
  }
  return blocks.filter(({ runs }) => runs.some(({ text }) => text !== ""));
}

const languageOf = (info: string) => /^[\w+#.-]{1,30}/.exec(info.trim())?.[0] ?? "";

function inlineRuns(tokens: readonly Token[], given: Marks): Run[] {
  const runs: Run[] = [];
  const stack: Marks[] = [given];
  const marks = () => stack.at(-1)!;
  const add = (text: string, more: Marks = marks()) => {
    if (text !== "") runs.push({ text, ...more });
  };
  for (const token of tokens) {
    const { type } = token;
    if (type === "text") add(token.content);
    else if (type === "softbreak" || type === "hardbreak") add("\n");
    // Telegram allows no other style inside code.
    else if (type === "code_inline") add(token.content, { code: true });
    else if (type === "strong_open") stack.push({ ...marks(), bold: true });
    else if (type === "em_open") stack.push({ ...marks(), italic: true });
    else if (type === "s_open") stack.push({ ...marks(), strike: true });
    else if (type === "link_open") stack.push({ ...marks(), ...linkTo(token.attrGet("href")) });
    else if (type === "image") add(token.content || "image", { ...marks(), ...linkTo(token.attrGet("src")) });
    else if (type.endsWith("_close") && stack.length > 1) stack.pop();
    else add(token.content);
  }
  return runs;
}

const linkTo = (href: unknown): Marks => (typeof href === "string" && LINKS.test(href) ? { link: href } : {});
