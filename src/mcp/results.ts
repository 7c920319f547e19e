import { isRecord } from "../lib/is-record.ts";
import { terminalSafe } from "../lib/terminal-safe.ts";
import { asData } from "../lib/untrusted.ts";

/** The part of a tool's result that IO reads. */
export interface CallResult {
  content?: unknown;
  structuredContent?: unknown;
  isError?: unknown;
}

/** The most characters of a result that a model gets. */
export const MOST_SHOWN = 100_000;

/** Formats a result for a model: text unchanged, pictures and sounds by their type. */
export function formatResult({ content, structuredContent }: CallResult): string {
  const parts = (Array.isArray(content) ? content : []).map(formatPart).filter((part) => part !== "");
  const text = parts.length > 0 ? parts.join("\n") : structuredContent === undefined ? "" : stringify(structuredContent);
  return text === "" ? "(nothing was said)" : asData(cut(plain(text.slice(0, 2 * MOST_SHOWN)), text.length));
}

/** A server's text without characters that could trick a terminal or a reader. */
export const plain = (text: string): string => terminalSafe(text).toWellFormed();

function cut(text: string, whole: number): string {
  if (text.length <= MOST_SHOWN) return text;
  return `${text.slice(0, MOST_SHOWN)}\n… (cut: the answer has ${whole.toLocaleString("en")} characters; ask for a smaller part)`;
}

function formatPart(part: unknown): string {
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
      return formatResource(part.resource);
    default:
      return `[something that IO does not show: ${String(part.type).slice(0, 60)}]`;
  }
}

function formatResource(resource: unknown): string {
  if (!isRecord(resource)) return "";
  const uri = String(resource.uri).slice(0, 2_000);
  return typeof resource.text === "string" ? `[${uri}]\n${resource.text}` : `[${uri}, ${sizeOf(resource.blob)}: not shown]`;
}

/** The decoded size of base64 data. */
const sizeOf = (data: unknown) => `${Math.round((String(data ?? "").length * 3) / 4).toLocaleString("en")} bytes`;

function stringify(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "";
}
