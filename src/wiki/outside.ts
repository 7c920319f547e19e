import { oneLine } from "../lib/quoted.ts";
import type { Memory, ReadingCall, WorkRecords } from "../store/work-records.ts";

export interface OutsideDeps {
  records: WorkRecords;
  /** Whether a page contains text from outside. */
  isMarked: (path: string) => boolean;
}

/** At most this many memories are searched. */
const MAX_MEMORIES = 100;
const MARKED = /^--- begin [0-9a-f]{16}$/m;
const PROGRAMS: Readonly<Record<string, string>> = {
  openai: "a program's request",
  mcp: "a program's request",
  acp: "an editor's request",
};
/** Commands that fetch other people's text. What a script fetches is not detected. */
const FETCHES =
  /(?:^|[\s;&|(`$'"/])(?:curl|wget|aria2c|lynx|w3m|gh|ssh|scp|rsync)\s|\bgit\b[^;&|\n]{0,300}\sclone\s|\b(?:https?|ftp|git):\/\//;
const PAGE_LINE = /^(?:(pages\/\S+)|"(pages\/.{0,2000}?\.md)") – /;
const WORK_ID = /\b(?:message|task) ([mt]_[0-9a-z]+)\)/g;

/** One source of outside text, as a page's mark names it, and the memory that read it. */
interface Found {
  what: string;
  memory: string;
}

interface Finder {
  found: (what: string, owner: string) => void;
  passedOn: (from: Memory, until: string) => void;
  sourceNamed: (name: string) => string;
}

/** Finds the outside text a piece of work has seen: read directly, earlier in the same memory, or passed on by others. */
export function createOutside({ records, isMarked }: OutsideDeps) {
  /** Reports what one memory read itself, and which memories passed text to it. */
  function scanMemory(memory: Memory, until: string, { found, passedOn, sourceNamed }: Finder): void {
    const follow = (owner: string) => {
      const from = records.memoryOf(owner);
      if (from) passedOn(from, until);
    };
    for (const call of records.calls(memory, until)) {
      for (const what of outsideTextOf(call, { isMarked, sourceNamed })) found(what, call.owner);
      for (const id of idsIn(call)) follow(id);
    }
    if (memory.kind === "conversation")
      for (const { id, channel, about, text, file } of records.messages(memory.name, until)) {
        if (Object.hasOwn(PROGRAMS, channel)) found(PROGRAMS[channel]!, id);
        if (file !== null) found(`the attached file ${plain(file)}`, id);
        if (channel !== "background" && MARKED.test(text)) found("a forwarded message", id);
        if (about !== null) follow(about);
      }
    if (memory.kind === "agent") {
      if (records.hasMarkedTask(memory.squad, memory.agent, until)) found("a task that quotes others", "");
      for (const { from, until: at } of records.passedTo(memory.squad, memory.agent, until)) passedOn(from, at);
    }
    if (memory.kind === "run") {
      const run = records.run(memory.id);
      if (MARKED.test(run?.issue ?? "")) found("an issue", memory.id);
      if (run && run.conversation !== null) passedOn({ kind: "conversation", name: run.conversation }, run.at);
    }
  }

  return {
    /** Names the outside text that a piece of work had seen by a argument time; what it read itself comes first. */
    knownTo(owner: string, at: string, sourceNamed = (name: string) => `the source ${plain(name)}`): string[] {
      const start = records.memoryOf(owner);
      if (!start) return [];
      const own: Found[] = [];
      const others: Found[] = [];
      const seen = new Map<string, string>();
      const queue: [Memory, string][] = [[start, at]];
      for (let next = queue.shift(); next; next = queue.shift()) {
        const [memory, until] = next;
        const key = keyOf(memory);
        if ((seen.get(key) ?? "") >= until || seen.size >= MAX_MEMORIES) continue;
        seen.set(key, until);
        const found = (what: string, by: string) => void (by === owner ? own : others).push({ what, memory: key });
        scanMemory(memory, until, { found, sourceNamed, passedOn: (from, untilThen) => void queue.push([from, untilThen]) });
      }
      const home = keyOf(start);
      const where = (memory: string) => (memory === home ? "read earlier" : `read in ${memory}`);
      const first = new Set(own.map(({ what }) => what));
      const rest = others.filter(({ what }) => !first.has(what)).map(({ what, memory }) => `${what} (${where(memory)})`);
      return [...first, ...new Set(rest)];
    },
  };
}
export type Outside = ReturnType<typeof createOutside>;

const keyOf = (memory: Memory): string =>
  memory.kind === "conversation"
    ? `the conversation ${plain(memory.name)}`
    : memory.kind === "agent"
      ? `the work of ${plain(memory.agent)}`
      : `the run ${plain(memory.id)}`;

/** Names the outside text that a call returned, if any. */
function outsideTextOf(
  { tool, args, result }: ReadingCall,
  { isMarked, sourceNamed }: Pick<OutsideDeps, "isMarked"> & Pick<Finder, "sourceNamed">,
): string[] {
  const pages = (paths: readonly string[]) => paths.filter(isMarked).map((path) => `the page ${plain(path)}`);
  switch (tool) {
    case "web_fetch":
      return [plain(argument(args, "url")) || "a web page"];
    case "github":
      return [`GitHub (${plain(argument(args, "action"))})`];
    case "wiki_source":
      // Without a name, the tool only lists the sources.
      return args.includes('"name"') ? [sourceNamed(argument(args, "name"))] : [];
    case "wiki_read":
      return pages([argument(args, "path")]);
    case "wiki_search":
      return pages((result ?? "").split("\n").flatMap(pageNamed));
    case "shell":
      return FETCHES.test(argument(args, "command")) ? [`the command ${plain(argument(args, "command"), 80)}`] : [];
    case "skill_search":
      return ["the registry of skills"];
    case "conversation_search":
    case "squad_task_status":
    case "swarm_status":
      return [];
    default:
      return [`the tool ${plain(tool)}`];
  }
}

/** The page named in one line of search results. */
function pageNamed(line: string): string[] {
  const [, path, quoted] = PAGE_LINE.exec(line) ?? [];
  return [path ?? quoted ?? []].flat();
}

/** The messages, tasks and runs whose text a call returned. */
function idsIn({ tool, args, result }: ReadingCall): string[] {
  if (tool === "squad_task_status") return [argument(args, "task_id")];
  if (tool === "swarm_status") return [argument(args, "run_id")];
  return tool === "conversation_search" ? [...(result ?? "").matchAll(WORK_ID)].map(([, id = ""]) => id) : [];
}

/** One argument, even if the arguments were truncated and are no longer valid JSON. */
function argument(args: string, name: string): string {
  const mark = `"${name}":"`;
  const at = args.indexOf(mark);
  if (at === -1) return "";
  const from = at + mark.length;
  let to = from;
  while (to < args.length && args[to] !== '"') to += args[to] === "\\" ? 2 : 1;
  const text = args.slice(from, to);
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    // Truncated in the middle of an escape.
    return text;
  }
}

/** Strips characters that markdown would interpret. */
export function plain(text: string, max = 200): string {
  return oneLine(text, max).replace(/[[\]<>`*"\\]/g, "");
}
