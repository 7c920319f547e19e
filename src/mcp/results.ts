import { isRecord } from "../lib/is-record.ts";
import { terminalSafe } from "../lib/terminal-safe.ts";
import { asData } from "../lib/untrusted.ts";

/** What a call of a server's tool answered, as far as IO reads it. */
export interface CallResult {
  content?: unknown;
  structuredContent?: unknown;
  isError?: unknown;
}

/** How many characters of an answer a model is shown. */
export const MOST_SHOWN = 100_000;

/** An answer in words for a model: text as it stands, pictures and sounds by what they are. */
export function tellResult({ content, structuredContent }: CallResult): string {
  const parts = (Array.isArray(content) ? content : []).map(tellPart).filter((part) => part !== "");
  const text = parts.length > 0 ? parts.join("\n") : structuredContent === undefined ? "" : stringify(structuredContent);
  return text === "" ? "(nothing was said)" : asData(cut(plain(text.slice(0, 2 * MOST_SHOWN)), text.length));
}

/** Words of a server's without what could play tricks on a terminal or a reader. */
export const plain = (text: string): string => terminalSafe(text).toWellFormed();

function cut(text: string, whole: number): string {
  if (text.length <= MOST_SHOWN) return text;
  return `${text.slice(0, MOST_SHOWN)}\n… (cut: the answer has ${whole.toLocaleString("en")} characters; ask for a smaller part)`;
}

function tellPart(part: unknown): string {
  if (!isRecord(part)) return "";
  switch (part.type) {
    case "text":
      return String(part.text ?? "");
    case "image":
    case "audio":
      return `[${part.type === "image" ? "a picture" : "a sound"}, ${String(part.mimeType).slice(0, 100)}, ${sizeOf(part.data)}: not shown]`;
    case "resource_link":
      return `[a resource: ${String(part.name ?? "").slice(0, 200)} ${String(part.uri).slice(0, 2_000)}]`;
    case "resource":
      return tellResource(part.resource);
    default:
      return `[something that IO does not show: ${String(part.type).slice(0, 60)}]`;
  }
}

function tellResource(resource: unknown): string {
  if (!isRecord(resource)) return "";
  const uri = String(resource.uri).slice(0, 2_000);
  return typeof resource.text === "string" ? `[${uri}]\n${resource.text}` : `[${uri}, ${sizeOf(resource.blob)}: not shown]`;
}

/** Of what is written in base64. */
const sizeOf = (data: unknown) => `${Math.round((String(data ?? "").length * 3) / 4).toLocaleString("en")} bytes`;

function stringify(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "";
}
