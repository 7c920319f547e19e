import { createHash } from "node:crypto";
import type { McpServerConfig } from "../home/mcp-config.ts";
import { conflict, missing, UserError } from "../lib/errors.ts";
import { quoted } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";
import type { McpServer, McpServerDetails } from "../protocol/mcp.ts";
import type { Tool } from "../tools/tool.ts";
import { configEntries, type Entry, projectEntries } from "./entries.ts";
import { createLent } from "./lent.ts";
import type { Logins } from "./oauth.ts";
import { createPool, type PoolDeps } from "./pool.ts";
import type { Server } from "./server.ts";
import { serverTools } from "./tools.ts";
import { detailsOf, type Trust, viewOf } from "./view.ts";

export interface McpDeps extends PoolDeps {
  /** The current servers of config.json. */
  servers: () => Record<string, McpServerConfig>;
  /** Sets in config.json whether a server is disabled. */
  setDisabled: (name: string, disabled: boolean) => void;
  /** Whether a conversation may start the servers that an editor lends. */
  mayStart: (conversation: string) => boolean;
  logins: Logins;
  /** The address of a server, with every variable filled in. */
  addressOf: (entry: Entry) => string;
}

/** The user's MCP servers: those of config.json, of projects and of editors, if a person enabled them. */
export function createMcp({ servers, setDisabled, mayStart, logins, addressOf, ...deps }: McpDeps) {
  const { state } = deps;
  const pool = createPool({ ...deps, wasLoggedIn: logins.wasLoggedIn });
  const isTrusted = (entry: Entry) => state.get(trustKey(entry)) === entry.hash;
  const lent = createLent({ pool, isTrusted, mayStart });
  let isClosed = false;

  /** The servers configured for these folders, lent by an editor, or in config.json, which wins. */
  function entriesIn(folders: readonly string[], lentHere: readonly Entry[] = []): Entry[] {
    const found = new Map(configEntries(servers()).map((entry) => [entry.name, entry]));
    for (const entry of [...lentHere, ...folders.flatMap((folder) => projectEntries(realOf(folder)))])
      if (!found.has(entry.name)) found.set(entry.name, entry);
    return [...found.values()];
  }

  function trustIn(entry: Entry): Trust {
    if (entry.from === "config") return entry.config?.disabled ? "off" : "on";
    if (entry.from === "acp") return lent.isAllowedAnywhere(entry) ? "on" : "off";
    const trusted = state.get(trustKey(entry));
    return trusted === undefined ? "off" : trusted === entry.hash ? "on" : "changed";
  }
  const isOn = (entry: Entry) => entry.config !== undefined && trustIn(entry) === "on";
  const serverOf = (entry: Entry) => (isOn(entry) ? pool.of(entry) : undefined);

  /** Stops servers that these folders no longer configure, or configure differently from what a person has seen. */
  function endUntrusted(folders: readonly string[]): void {
    const places = folders.map((folder) => realOf(folder));
    const own = pool
      .all()
      .map((server) => server.entry())
      .filter(({ from, project }) => from !== "acp" && project !== null && places.includes(project));
    if (own.length === 0) return;
    const trusted = places
      .flatMap(projectEntries)
      .filter(isOn)
      .map(({ key }) => key);
    for (const { key } of own) if (!trusted.includes(key)) pool.drop(key);
  }

  /** The enabled servers; starts those that have not been started, in the background. */
  function running(folders: readonly string[], conversation?: string) {
    if (isClosed) return [];
    endUntrusted(folders);
    const lentHere = lent.to(conversation);
    return entriesIn(folders, lentHere)
      .filter((entry) => lentHere.includes(entry) || isOn(entry))
      .map((entry) => {
        const server = pool.of(entry);
        const { state: now } = server.status();
        // A failed server with known tools starts again when one of them is called.
        if (now === "off" || (now === "failed" && server.offered().length === 0)) void server.start();
        return server;
      });
  }

  function find(name: string, project: string | undefined): Entry {
    const lentThere = project === undefined ? [] : lent.all().filter((each) => each.project === realOf(project));
    const entry = entriesIn(project === undefined ? [] : [project], lentThere).find((each) => each.name === name);
    if (!entry) throw noSuchServer(name, project);
    return entry;
  }
  const view = (entry: Entry) => viewOf(entry, trustIn(entry), serverOf(entry));
  const details = (entry: Entry) => detailsOf(entry, trustIn(entry), serverOf(entry));

  return {
    /** The tools for work in these folders and this conversation: available at once, from what is known of each server. */
    toolsFor: (folders: readonly string[], conversation?: string): Tool[] => serverTools(running(folders, conversation)),
    lend: lent.lend,
    allowLent: lent.allow,
    takeBack: lent.takeBack,
    /** The servers of config.json, these projects, and editors. */
    list(projects: readonly string[]): McpServer[] {
      endUntrusted(projects);
      // Two projects may have servers with the same name.
      const found = [[], ...projects.map((project) => [project])].flatMap((folders) => entriesIn(folders));
      return [...new Map([...found, ...lent.all()].map((entry) => [entry.key, entry])).values()].map(view);
    },
    show: (name: string, project?: string): McpServerDetails => details(find(name, project)),
    /** Enables a server as it was shown, accepts its current tools, and waits for its start. */
    async enable(name: string, { project, hash }: { project?: string | undefined; hash?: string | undefined }) {
      const entry = find(name, project);
      checkShown(entry, hash);
      if (entry.from === "config") setDisabled(name, false);
      else state.set(trustKey(entry), entry.hash);
      const now = find(name, project);
      const server = pool.of(now);
      server.accept();
      await server.start();
      return details(now);
    },
    disable(name: string, project?: string): McpServer {
      const entry = find(name, project);
      if (entry.from === "config") setDisabled(name, true);
      else state.delete(trustKey(entry));
      lent.disallow(entry);
      pool.drop(entry.key);
      return view(find(name, project));
    },
    /** Starts a server if it is enabled; returns how that went. */
    async test(name: string, project?: string): Promise<McpServerDetails> {
      const entry = find(name, project);
      await serverOf(entry)?.start();
      return details(entry);
    },
    ...loginsOn({ logins, addressOf, find, isOn, serverOf, details }),
    /** Starts and stops servers to match the current config.json. */
    follow(): void {
      const wanted = configEntries(servers()).filter(isOn);
      for (const { from, key } of pool.all().map((server) => server.entry()))
        if (from === "config" && !wanted.some((entry) => entry.key === key)) pool.drop(key);
      running([]);
    },
    async close(): Promise<void> {
      isClosed = true;
      lent.close();
      await pool.close();
    },
  };
}
export type Mcp = ReturnType<typeof createMcp>;

function noSuchServer(name: string, project: string | undefined): UserError {
  const where = project === undefined ? "config.json names no" : `neither config.json nor ${project} names an`;
  return missing(`There is no such server: ${where} MCP server ${quoted(name, 80)}.`);
}

/** Only what a person was shown can be enabled. */
function checkShown(entry: Entry, hash: string | undefined): void {
  if (entry.project !== null && hash === undefined)
    throw new UserError("Say by its hash which version of the server was shown to a person.");
  if (hash !== undefined && hash !== entry.hash)
    throw conflict("The server was changed since it was shown. Look at it again before you switch it on.");
  if (!entry.config) throw new UserError(`It cannot be switched on: ${entry.trouble}.`);
}

interface LoginParts extends Pick<McpDeps, "logins" | "addressOf"> {
  find: (name: string, project: string | undefined) => Entry;
  isOn: (entry: Entry) => boolean;
  serverOf: (entry: Entry) => Server | undefined;
  details: (entry: Entry) => McpServerDetails;
}

/** Logging in to servers, and out. */
function loginsOn({ logins, addressOf, find, isOn, serverOf, details }: LoginParts) {
  return {
    /** Returns the address where a person logs in. */
    async login(name: string, project?: string): Promise<{ url: string }> {
      const entry = find(name, project);
      if (!isOn(entry)) throw conflict("This server is not switched on.");
      if (entry.config?.url === undefined) throw new UserError("Only a server with an address has a login.");
      return { url: await logins.begin(entry, addressOf(entry)) };
    },
    /** Finishes a login with what the browser brought back. */
    async loggedIn(given: URLSearchParams): Promise<void> {
      const entry = await logins.finish(given);
      await serverOf(entry)?.reconnect();
    },
    async logout(name: string, project?: string): Promise<McpServerDetails> {
      const entry = find(name, project);
      logins.forget(entry);
      await serverOf(entry)?.reconnect();
      return details(entry);
    },
  };
}

const trustKey = ({ key }: Entry) => `mcp.trust:${key}`;

/** An environment variable that marks every server of a data folder, so that leftover ones can be found. */
export const markOf = (home: string): string => `IO_MCP=${createHash("sha256").update(realOf(home)).digest("hex").slice(0, 24)}`;
