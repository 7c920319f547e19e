import { type Folder, withFolder } from "../../lib/pinned/folder.ts";
import { readPlain } from "../../lib/pinned/read.ts";
import { appendFile, replaceFile } from "../../lib/pinned/write.ts";
import { realOf } from "../../lib/real-path.ts";

const HISTORY = "history";
const DRAFTS = "drafts.json";
const MOST_LINES = 1_000;
/** How many characters of the history are kept between sessions. */
const MOST_KEPT = 2_000_000;
/** The largest history file that is still read, which bounds what one session may add. */
const MOST_BYTES = 100_000_000;

/** Typed text, kept between sessions in files that only their owner can read. If it cannot be saved, the chat goes on. */
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
      // The home folder does not exist yet, or the disk is full.
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
      const whole = text(HISTORY);
      const lines = whole.split("\n").filter(Boolean);
      const kept = newest(lines);
      if (lines.length > MOST_LINES * 2 || whole.length > MOST_KEPT)
        within((folder) => replaceFile(folder, HISTORY, kept.map((line) => `${line}\n`).join(""), { durable: false }));
      return kept.flatMap((line) => {
        const entry = parsed(line);
        return typeof entry === "string" ? [entry] : [];
      });
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

function newest(lines: readonly string[]): string[] {
  let room = MOST_KEPT;
  return lines
    .slice(-MOST_LINES)
    .reverse()
    .filter((line) => {
      const fits = line.length < room;
      if (fits) room -= line.length + 1;
      return fits;
    })
    .reverse();
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // An incomplete line, left by a crash.
    return undefined;
  }
}
