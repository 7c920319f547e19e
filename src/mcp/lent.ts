import { createHash } from "node:crypto";
import type { McpServerConfig } from "../home/mcp-config.ts";
import { conflict, missing } from "../lib/errors.ts";
import { quoted } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";
import type { McpServerDetails } from "../protocol/mcp.ts";
import { canonical } from "../tools/audit.ts";
import type { Entry } from "./entries.ts";
import type { Pool } from "./pool.ts";
import { detailsOf } from "./view.ts";

/** Servers that nobody used for this long are ended; an editor that is still there lends them again. */
const IDLE_MS = 3_600_000;

interface Loan {
  entries: Entry[];
  timer: NodeJS.Timeout;
}

export interface LentDeps {
  pool: Pick<Pool, "of" | "drop">;
  /** Whether a person has switched it on for good. */
  isTrusted: (entry: Entry) => boolean;
  /** Whether a conversation may have servers started; in the mode plan none is. */
  mayStart: (conversation: string) => boolean;
}

/**
 * The servers that an editor brings along for a conversation. They are kept in memory alone. An editor is a program: what it
 * brings is started once a person has seen it, here for this conversation or by `io mcp enable` for good.
 */
export function createLent({ pool, isTrusted, mayStart }: LentDeps) {
  const loans = new Map<string, Loan>();
  /** What a person allowed for one conversation, by the hash of what is run or reached. */
  const allowed = new Map<string, Set<string>>();
  const isAllowed = (conversation: string, { hash }: Entry) => allowed.get(conversation)?.has(hash) === true;
  const isOn = (conversation: string, entry: Entry) =>
    entry.config !== undefined && mayStart(conversation) && (isTrusted(entry) || isAllowed(conversation, entry));

  function set(conversation: string, entries: Entry[]): void {
    const before = loans.get(conversation);
    clearTimeout(before?.timer);
    loans.delete(conversation);
    if (entries.length > 0) {
      const timer = setTimeout(() => set(conversation, []), IDLE_MS);
      timer.unref();
      loans.set(conversation, { entries, timer });
    }
    const used = new Set(all().map(({ key }) => key));
    for (const { key } of before?.entries ?? []) if (!used.has(key)) pool.drop(key);
  }
  async function begin(conversation: string, entry: Entry): Promise<McpServerDetails> {
    if (!isOn(conversation, entry)) {
      const shown = detailsOf(entry, "off", undefined);
      return mayStart(conversation) ? shown : { ...shown, state: "off", detail: "nothing is started in the mode plan" };
    }
    const server = pool.of(entry);
    // An editor brings a server as it is now: nobody has to accept that its tools are others than last time.
    if (server.status().state === "off") server.accept();
    await server.start();
    return detailsOf(entry, "on", server);
  }
  const all = (): Entry[] => [...loans.values()].flatMap(({ entries }) => entries);

  return {
    /** Takes what an editor brings along for a conversation, and waits for the start of what a person has seen before. */
    async lend(conversation: string, folder: string, given: Record<string, McpServerConfig>): Promise<McpServerDetails[]> {
      const entries = lentEntries(realOf(folder), given);
      set(conversation, entries);
      return Promise.all(entries.map((entry) => begin(conversation, entry)));
    },
    /** A person has seen what would be started, and allows it for this conversation. */
    async allow(conversation: string, name: string, hash: string): Promise<McpServerDetails> {
      const entry = loans.get(conversation)?.entries.find((each) => each.name === name);
      if (!entry) throw missing(`No editor has brought an MCP server ${quoted(name, 80)} to this conversation.`);
      if (entry.hash !== hash) throw conflict("The server is another one than was shown. Look at it again.");
      if (!mayStart(conversation)) throw conflict("In the mode plan no MCP server of an editor is started.");
      allowed.set(conversation, (allowed.get(conversation) ?? new Set()).add(hash));
      return begin(conversation, entry);
    },
    isAllowedAnywhere: (entry: Entry): boolean => [...loans.keys()].some((conversation) => isOn(conversation, entry)),
    /** Nobody's leave for it counts any more. */
    disallow({ hash }: Entry): void {
      for (const hashes of allowed.values()) hashes.delete(hash);
    },
    takeBack(conversation: string): void {
      set(conversation, []);
      allowed.delete(conversation);
    },
    /** Each server once, whoever has it. */
    all: (): Entry[] => [...new Map(all().map((entry) => [entry.key, entry])).values()],
    /** Those of a conversation, which is at work now, that may run. */
    to(conversation: string | undefined): Entry[] {
      const loan = conversation === undefined ? undefined : loans.get(conversation);
      loan?.timer.refresh();
      return (loan?.entries ?? []).filter((entry) => conversation !== undefined && isOn(conversation, entry));
    },
    close(): void {
      for (const { timer } of loans.values()) clearTimeout(timer);
      loans.clear();
    },
  };
}

/** What an editor said, as it stands: no variable is filled in, and what only reads is for the user to say. */
function lentEntries(folder: string, servers: Record<string, McpServerConfig>): Entry[] {
  return Object.entries(servers).map(([name, given]) => {
    const config = { ...given, read: [], disabled: undefined };
    const hash = createHash("sha256").update(canonical({ config, folder })).digest("hex").slice(0, 32);
    return { key: `acp:${hash}:${name}`, name, from: "acp" as const, project: folder, config, hash };
  });
}
