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

/** Servers that were unused for this long are stopped; an editor that is still open lends them again. */
const IDLE_MS = 3_600_000;

interface Loan {
  entries: Entry[];
  timer: NodeJS.Timeout;
}

export interface LentDeps {
  pool: Pick<Pool, "of" | "drop">;
  /** Whether a person has enabled it permanently. */
  isTrusted: (entry: Entry) => boolean;
  /** Whether a conversation may start servers; in plan mode it may not. */
  mayStart: (conversation: string) => boolean;
}

/**
 * The MCP servers that an editor lends to a conversation, kept only in memory. An editor is a program, so its servers start only
 * after a person has allowed them: for this conversation, or permanently with `io mcp enable`.
 */
export function createLent({ pool, isTrusted, mayStart }: LentDeps) {
  const loans = new Map<string, Loan>();
  /** The hashes that a person allowed for one conversation. */
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
    // An editor lends a server in its current version, so nobody has to accept changed tools.
    if (server.status().state === "off") server.accept();
    await server.start();
    return detailsOf(entry, "on", server);
  }
  const all = (): Entry[] => [...loans.values()].flatMap(({ entries }) => entries);

  return {
    /** Takes the servers that an editor lends to a conversation, and waits for those that a person has allowed to start. */
    async lend(conversation: string, folder: string, given: Record<string, McpServerConfig>): Promise<McpServerDetails[]> {
      const entries = lentEntries(realOf(folder), given);
      set(conversation, entries);
      return Promise.all(entries.map((entry) => begin(conversation, entry)));
    },
    /** Allows a server for this conversation, after a person has seen what would be started. */
    async allow(conversation: string, name: string, hash: string): Promise<McpServerDetails> {
      const entry = loans.get(conversation)?.entries.find((each) => each.name === name);
      if (!entry) throw missing(`No editor has brought an MCP server ${quoted(name, 80)} to this conversation.`);
      if (entry.hash !== hash) throw conflict("The server is another one than was shown. Look at it again.");
      if (!mayStart(conversation)) throw conflict("In the mode plan no MCP server of an editor is started.");
      allowed.set(conversation, (allowed.get(conversation) ?? new Set()).add(hash));
      return begin(conversation, entry);
    },
    isAllowedAnywhere: (entry: Entry): boolean => [...loans.keys()].some((conversation) => isOn(conversation, entry)),
    /** Revokes every permission for a server. */
    disallow({ hash }: Entry): void {
      for (const hashes of allowed.values()) hashes.delete(hash);
    },
    takeBack(conversation: string): void {
      set(conversation, []);
      allowed.delete(conversation);
    },
    /** Every lent server once. */
    all: (): Entry[] => [...new Map(all().map((entry) => [entry.key, entry])).values()],
    /** The servers that may run for an active conversation. */
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

/** The editor's entries unchanged: no variable is filled in, and no tool counts as read-only. */
function lentEntries(folder: string, servers: Record<string, McpServerConfig>): Entry[] {
  return Object.entries(servers).map(([name, given]) => {
    const config = { ...given, read: [], disabled: undefined };
    const hash = createHash("sha256").update(canonical({ config, folder })).digest("hex").slice(0, 32);
    return { key: `acp:${hash}:${name}`, name, from: "acp" as const, project: folder, config, hash };
  });
}
