import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import type { Config } from "../home/config.ts";
import type { Paths } from "../home/paths.ts";
import { parseJson } from "../lib/input-json.ts";
import { isRecord } from "../lib/is-record.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { named } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";
import { withoutComments } from "../mcp/json-with-comments.ts";
import type { Finding } from "../protocol/doctor.ts";
import type { McpServer } from "../protocol/mcp.ts";
import { LOGIN_EXPIRED, mcpArguments } from "../protocol/mcp-command.ts";
import { ASTRAY_KEY, readAstray } from "../store/client-tokens.ts";

export interface ConnectionFindingsDeps {
  paths: Paths;
  env: NodeJS.ProcessEnv;
  config: Config;
  /** The MCP servers as a running daemon knows them. */
  servers?: (() => Promise<readonly McpServer[]> | readonly McpServer[]) | undefined;
  now?: Date;
}

const ok = (check: string, found: string): Finding => ({ check, state: "ok", found });
const warning = (check: string, found: string, remedy: string): Finding => ({ check, state: "warning", found, remedy });

/** The state of the user's MCP servers; nothing if there are none. */
export async function findMcpServers({ config, servers }: ConnectionFindingsDeps): Promise<Finding[]> {
  const check = "mcp";
  const written = Object.values(config.mcpServers).filter(({ disabled }) => !disabled).length;
  if (!servers)
    return written === 0 ? [] : [ok(check, `config.json names ${count(written, "server")}; no daemon runs that uses any`)];
  const all = await servers();
  const found = all.flatMap((server) => serverFinding(check, server));
  const ready = all.filter(({ state }) => state === "ready").length;
  return [...(ready > 0 ? [ok(check, `${count(ready, "server")} there`)] : []), ...found];
}

function serverFinding(check: string, server: McpServer): Finding[] {
  const { name, project, state, detail } = server;
  const called = `${named(name, 80)}${project === null ? "" : ` of ${named(project, 300)}`}`;
  const why = detail === null ? "" : `: ${detail}`;
  const rest = mcpArguments(server);
  if (state === "failed") return [warning(check, `${called} is not there${why}`, `Look with: io mcp test ${rest}`)];
  if (state === "needs-login") return [warning(check, needsLogin(called, detail), `Run: io mcp login ${rest}`)];
  if (state === "untrusted" && detail?.startsWith("changed"))
    return [warning(check, `${called} was changed since you switched it on, and is off`, `Look at it: io mcp enable ${rest}`)];
  if (state === "ready" && detail !== null) return [warning(check, `${called}${why}`, `Look at it: io mcp enable ${rest}`)];
  return [];
}

const needsLogin = (called: string, detail: string | null): string =>
  detail?.startsWith(LOGIN_EXPIRED)
    ? `the login of ${called} has expired`
    : `${called} wants a login, and nobody has logged in yet`;

/** A token unused for this long was forgotten, or pasted wrongly. */
const UNUSED_MS = 7 * 86_400_000;

/** Client tokens that were never used, or were used for an address they do not open. */
export function findTokens({ paths, now = new Date() }: ConnectionFindingsDeps): Finding[] {
  if (!existsSync(paths.database)) return [];
  const db = new DatabaseSync(paths.database, { readOnly: true });
  try {
    if (!db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'client_tokens'").get()) return [];
    const tokens = db
      .prepare("SELECT name, scopes, created_at AS createdAt, last_used_at AS lastUsedAt FROM client_tokens ORDER BY name")
      .all() as { name: string; scopes: string; createdAt: string; lastUsedAt: string | null }[];
    if (tokens.length === 0) return [];
    const state = db.prepare("SELECT value FROM io_state WHERE key = ?").get(ASTRAY_KEY) as { value: string } | undefined;
    const astray = readAstray(state?.value);
    const findings = tokens.flatMap(({ name, scopes, createdAt, lastUsedAt }) => {
      const wrong = astray[name];
      const opens = (JSON.parse(scopes) as string[]).map((scope) => (scope === "openai" ? "/v1" : "/mcp")).join(" and ");
      const remedy = `Paste the address that belongs to it (docs/guides), or make another: io token revoke ${name}, io token create`;
      // Correct use since then means that it was fixed.
      if (wrong && (lastUsedAt === null || wrong.at >= lastUsedAt))
        return [warning("tokens", `the token ${name} opens ${opens}, and was used at ${named(wrong.path, 200)}`, remedy)];
      if (lastUsedAt === null && now.getTime() - Date.parse(createdAt) > UNUSED_MS)
        return [warning("tokens", `the token ${name} was never used since ${createdAt.slice(0, 10)}`, `io token revoke ${name}`)];
      return [];
    });
    return findings.length > 0 ? findings : [ok("tokens", count(tokens.length, "token"))];
  } finally {
    db.close();
  }
}

/** Where the programs that `io connect` knows keep what was pasted, below the user's home. */
const FILES: Readonly<Record<string, readonly string[]>> = {
  zed: [".config/zed/settings.json"],
  jetbrains: [".jetbrains/acp.json"],
  "claude-desktop": [
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
  ],
  "claude-code": [".claude.json"],
  cursor: [".cursor/mcp.json"],
};
const LONGEST_FILE = 2_000_000;

/** Programs that start IO by a path that no longer exists, or with another data folder. */
export function findClients({ paths, env }: ConnectionFindingsDeps): Finding[] {
  const home = env.HOME || homedir();
  return Object.entries(FILES).flatMap(([client, files]) =>
    files.flatMap((file) => {
      const text = smallTextAt(join(home, file), LONGEST_FILE);
      const read = text === undefined ? undefined : parseJson(withoutComments(text));
      if (!read || !("value" in read)) return [];
      const remedy = `Paste what "io connect ${client}" prints into ~/${file} in its place.`;
      return startsIn(read.value).map(({ command, args, ioHome }) => {
        const gone = [command, args[0]!].find((path) => path.startsWith("/") && !existsSync(path));
        if (gone !== undefined)
          return warning("clients", `${client} starts IO by ${named(gone, 300)}, which is not there`, remedy);
        if (ioHome !== undefined && realOf(ioHome) !== realOf(paths.home))
          return warning("clients", `${client} starts an IO with another data folder, ${named(ioHome, 300)}`, remedy);
        return ok("clients", `${client} starts IO (io ${args[1]})`);
      });
    }),
  );
}

interface Start {
  command: string;
  args: string[];
  ioHome?: string | undefined;
}

/** Every entry that starts `io acp` or `io mcp`, at any depth. */
function startsIn(value: unknown, depth = 0): Start[] {
  if (!isRecord(value) || depth > 6) return [];
  const { command, args, env } = value;
  const isOurs =
    typeof command === "string" &&
    Array.isArray(args) &&
    /(?:^|[\\/])io(?:\.js)?$/.test(String(args[0])) &&
    /^(?:acp|mcp)$/.test(String(args[1]));
  if (!isOurs) return Object.values(value).flatMap((each) => startsIn(each, depth + 1));
  const ioHome = isRecord(env) && typeof env.IO_HOME === "string" ? env.IO_HOME : undefined;
  return [{ command, args: args.map(String), ioHome }];
}

const count = (number: number, what: string) => `${number} ${what}${number === 1 ? "" : "s"}`;
