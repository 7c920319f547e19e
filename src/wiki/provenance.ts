import type { PageWriters } from "../store/page-writers.ts";
import type { WorkRecords } from "../store/work-records.ts";
import { createOutside, plain } from "./outside.ts";
import type { Wiki } from "./wiki.ts";

export interface ProvenanceDeps {
  wiki: Pick<Wiki, "peek" | "history" | "readVersion">;
  writers: Pick<PageWriters, "changes" | "saidIn">;
  records: WorkRecords;
  /** When somebody unknown to IO last changed a page, if no person has reviewed that yet. */
  changedOutside: (path: string) => string | undefined;
  now?: () => Date;
}

/** The message or task that writes a page, and who acts in it. */
export interface Work {
  owner: string;
  actor: string;
}

const MARK = "> **From outside:**";
const MAX_MARKS = 5;
const MAX_NAMED = 5;

/** Tracks which outside text a piece of work has seen, and adds a line about it to each page that the work writes. */
export function createProvenance({ wiki, writers, records, changedOutside, now = () => new Date() }: ProvenanceDeps) {
  const outside = createOutside({ records, isMarked: (path) => isMarked(path) || isChangedOutside(path) });

  function isChangedOutside(path: string): boolean {
    return changedOutside(path) !== undefined;
  }

  function isMarked(path: string): boolean {
    try {
      return marksIn(wiki.peek(path) ?? "").length > 0;
    } catch {
      // The model gave an invalid page path.
      return false;
    }
  }

  /** The page's text, or its last text if an agent deleted it. */
  function textBefore(path: string): string {
    const text = wiki.peek(path);
    if (text !== undefined) return text;
    const [last] = writers.changes({ since: "", limit: 1, path });
    if (last?.by !== "agent") return "";
    try {
      const [latest] = wiki.history(path);
      return latest ? wiki.readVersion(path, latest.version) : "";
    } catch {
      // No version was kept.
      return "";
    }
  }

  return {
    /** Whether a page carries a mark for outside text. */
    isMarked,
    /** Whether a piece of work had seen outside text by a given time. */
    readOutside: (owner: string, at: string): boolean => outside.knownTo(owner, at).length > 0,
    /**
     * Adds to a page's text a line for each time that outside text went into it: who wrote it, when, from what, and what
     * was asked. Only a person can remove such a line. `source` names the raw source of the page.
     */
    mark(
      { owner, actor }: Work,
      { path, content, source }: { path: string; content: string; source?: string | undefined },
    ): string {
      const at = now().toISOString();
      const changedAt = changedOutside(path);
      const from = [
        ...(source === undefined ? [] : [sourceLink(source, path)]),
        ...(changedAt === undefined ? [] : [`what somebody outside IO wrote here, found on ${changedAt.slice(0, 10)}`]),
        ...outside.knownTo(owner, at, (name) => sourceLink(name, path)),
      ];
      const said = plain(writers.saidIn(owner) ?? "", 120);
      const line = `${MARK} written by ${plain(actor)} on ${at.slice(0, 10)} from ${listOf([...new Set(from)])}${said === "" ? "" : `; asked: "${said}"`}`;
      const marks = [...new Set([...marksIn(textBefore(path)), ...(from.length === 0 ? [] : [line])])].slice(-MAX_MARKS);
      const own = marksIn(content).length === 0 ? content : withoutMarks(content);
      return marks.length === 0 ? own : `${own.trimEnd()}\n\n${marks.join("\n")}\n`;
    },
  };
}
export type Provenance = ReturnType<typeof createProvenance>;

const linesOf = (text: string) => text.split(/\r?\n/);
const isMark = (line: string) => line.startsWith(MARK);
const marksIn = (text: string): string[] => (text.includes(MARK) ? linesOf(text).filter(isMark) : []);
const withoutMarks = (text: string): string =>
  linesOf(text)
    .filter((line) => !isMark(line))
    .join("\n");

/** A link that also works from the page's file. */
function sourceLink(name: string, path: string): string {
  const up = "../".repeat(path.replace(/^pages\//, "").split("/").length);
  const safe = plain(name);
  return `the source [${safe}](${up}sources/${encodeURIComponent(safe)})`;
}

function listOf(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
