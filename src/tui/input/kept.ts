import { type Folder, withFolder } from "../../lib/pinned/folder.ts";
import { readPlain } from "../../lib/pinned/read.ts";
import { appendFile, replaceFile } from "../../lib/pinned/write.ts";
import { realOf } from "../../lib/real-path.ts";

const HISTORY = "history";
const DRAFTS = "drafts.json";
const MOST_LINES = 1_000;
const MOST_BYTES = 2_000_000;

/** What was typed, kept across starts in files that only their owner reads. What cannot be kept is no reason to stop a chat. */
export interface Kept {
  /** Everything that was sent, oldest first. */
  history(): string[];
  remember(text: string): void;
  /** Unsent text, by conversation. */
  drafts(): Record<string, string>;
  keepDrafts(drafts: Record<string, string>): void;
}

export function createKept(home: string): Kept {
  const within = <T>(work: (folder: Folder) => T): T | undefined => {
    try {
      return withFolder(realOf(home), work);
    } catch {
      // A home that is not there yet, or a full disk.
      return undefined;
    }
  };
  const text = (name: string): string =>
    within((folder) => {
      const read = readPlain(folder, name, MOST_BYTES);
      return "bytes" in read ? read.bytes.toString("utf8") : "";
    }) ?? "";
  return {
    history() {
      const lines = text(HISTORY).split("\n").filter(Boolean);
      const entries = lines.flatMap((line) => {
        const entry = parsed(line);
        return typeof entry === "string" ? [entry] : [];
      });
      if (lines.length > MOST_LINES * 2) {
        const kept = entries.slice(-MOST_LINES).map((entry) => `${JSON.stringify(entry)}\n`);
        within((folder) => replaceFile(folder, HISTORY, kept.join(""), { durable: false }));
      }
      return entries.slice(-MOST_LINES);
    },
    remember: (entry) => void within((folder) => appendFile(folder, HISTORY, `${JSON.stringify(entry)}\n`)),
    drafts() {
      const drafts = parsed(text(DRAFTS));
      if (typeof drafts !== "object" || drafts === null) return {};
      return Object.fromEntries(Object.entries(drafts).filter((entry) => typeof entry[1] === "string")) as Record<string, string>;
    },
    keepDrafts(drafts) {
      const some = Object.fromEntries(Object.entries(drafts).filter(([, draft]) => draft !== ""));
      within((folder) => replaceFile(folder, DRAFTS, JSON.stringify(some), { durable: false }));
    },
  };
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // Half a line, as a crash may leave it.
    return undefined;
  }
}
