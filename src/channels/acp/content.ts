import type { ContentBlock } from "@agentclientprotocol/sdk";
import { named } from "../../lib/quoted.ts";
import { terminalSafe } from "../../lib/terminal-safe.ts";
import { asData } from "../../lib/untrusted.ts";

/** The text and files of a prompt. */
export interface Given {
  text: string;
  /** Pictures and other files, attached to the message. */
  files: { name: string; bytes: Uint8Array }[];
}

/** The most files of a message. */
const MOST_FILES = 10;

/** Converts a prompt to a message. Quoted content stands between markers that it cannot predict. */
export function readPrompt(blocks: readonly ContentBlock[]): Given {
  const files: Given["files"] = [];
  const attach = (name: string, data: string): string => {
    if (files.length === MOST_FILES) return `(Not attached, because a message takes ${MOST_FILES} files: ${named(name)})`;
    files.push({ name, bytes: Buffer.from(data, "base64") });
    return "";
  };
  const parts = blocks.map((block) => blockText(block, attach)).filter((part) => part !== "");
  const text = parts.join("\n\n").trim();
  return { text: text === "" && files.length > 0 ? `(${files.length === 1 ? "a file" : "files"})` : text, files };
}

function blockText(block: ContentBlock, attach: (name: string, data: string) => string): string {
  switch (block.type) {
    case "text":
      return block.text;
    case "resource_link":
      return `Linked: ${named(block.name)} at ${named(block.uri, 2_000)}`;
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return `Attached, as data: ${named(resource.uri, 2_000)}\n${asData(resource.text)}`;
      return attach(lastPart(resource.uri) || "file", resource.blob);
    }
    case "image":
      return attach(lastPart(block.uri ?? "") || `picture.${lastPart(block.mimeType)}`, block.data);
    case "audio":
      return attach(`recording.${lastPart(block.mimeType)}`, block.data);
  }
}

const lastPart = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** Text for an editor, without control characters that could manipulate its screen. */
export const textBlock = (text: string): ContentBlock => ({ type: "text", text: terminalSafe(text) });
