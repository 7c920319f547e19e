import { createHash } from "node:crypto";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { McpServerConfig } from "../home/mcp-config.ts";
import { UserError } from "../lib/errors.ts";
import { parseJson } from "../lib/input-json.ts";
import { isRecord } from "../lib/is-record.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { explainIssues } from "../lib/validation.ts";
import { canonical } from "../tools/audit.ts";
import { withoutComments } from "./json-with-comments.ts";

/** One configured server. */
export interface Entry {
  /** Identifies it, even after a restart. */
  key: string;
  name: string;
  from: "config" | "project" | "vscode" | "acp";
  /** The project folder of its file or editor session; null for a server of config.json. */
  project: string | null;
  /** Undefined if the configuration is invalid; `trouble` then says why. */
  config: McpServerConfig | undefined;
  trouble?: string;
  /** Hash of the program or address: with another hash it is another server. */
  hash: string;
}

/** The files of a project that configure servers, and their key. */
const FILES = [
  { from: "project", name: ".mcp.json", key: "mcpServers" },
  { from: "vscode", name: join(".vscode", "mcp.json"), key: "servers" },
] as const;
const LONGEST_FILE = 200_000;
const MOST_SERVERS = 50;

/** The servers of config.json. */
export function configEntries(servers: Record<string, McpServerConfig>): Entry[] {
  return Object.entries(servers).map(([name, config]) => ({
    ...{ key: `config:${name}`, name, from: "config" as const, project: null, config },
    hash: hashOf(config),
  }));
}

/** The servers that a project's files configure; `.mcp.json` wins if a name occurs twice. */
export function projectEntries(folder: string): Entry[] {
  const found = new Map<string, Entry>();
  for (const { from, name: file, key } of FILES) {
    const text = smallTextAt(join(folder, file), LONGEST_FILE);
    const { servers = {}, trouble } = text === undefined || text.trim() === "" ? {} : serversIn(text, key);
    // Stands in the list for its servers, so that they do not seem to be gone.
    const unreadable = { config: undefined, hash: "", trouble: `${file} ${trouble}, so its servers are not known` };
    if (trouble !== undefined) found.set(file, { ...unreadable, key: `${from}:${folder}:`, name: file, from, project: folder });
    for (const [name, written] of Object.entries(servers).slice(0, MOST_SERVERS)) {
      if (found.has(name) || !/^[^\p{C}]{1,64}$/u.test(name)) continue;
      found.set(name, { ...entryOf(written), key: `${from}:${folder}:${name}`, name, from, project: folder });
    }
  }
  return [...found.values()];
}

function serversIn(text: string, key: string): { servers?: Record<string, unknown>; trouble?: string } {
  const read = parseJson(withoutComments(text));
  if ("trouble" in read) return read;
  const servers = isRecord(read.value) ? read.value[key] : undefined;
  return isRecord(servers) ? { servers } : {};
}

/** Reads one entry. Unknown keys are ignored, since other programs store their own in these files. */
function entryOf(written: unknown): Pick<Entry, "config" | "trouble" | "hash"> {
  const known = isRecord(written) ? Object.fromEntries(Object.entries(written).filter(([name]) => KNOWN.has(name))) : written;
  const read = McpServerConfig.safeParse(known);
  const hash = sha256(canonical(known) ?? "");
  if (!read.success) return { config: undefined, trouble: explainIssues(read.error), hash };
  // Only the user may say which tools just read, and switch a server off.
  return { config: { ...read.data, read: [], disabled: undefined }, hash };
}
const KNOWN = new Set(["type", "command", "args", "env", "cwd", "url", "headers", "oauth", "tools", "timeout"]);

/** The program or address of a server, with every variable filled in. */
export interface Target {
  command: string | undefined;
  args: string[];
  env: Record<string, string>;
  cwd: string | undefined;
  url: string | undefined;
  headers: Record<string, string>;
}

/** Fills in `${VAR}`, `${VAR:-x}`, `${env:VAR}` and `${workspaceFolder}`. Throws a UserError that names an unset variable. */
export function fillIn({ config, project, from }: Entry, env: NodeJS.ProcessEnv): Target {
  if (!config) throw new UserError("It is not written as a server should be.");
  const fill = (text: string) =>
    from === "acp" ? text : text.replace(/\$\{([^{}]{1,200})\}/g, (_whole, inside: string) => filledIn(inside, project, env));
  const fillAll = (texts: Record<string, string>) =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fill(text)]));
  const cwd = config.cwd === undefined ? undefined : fill(config.cwd);
  return {
    command: config.command === undefined ? undefined : commandAt(fill(config.command), project),
    args: config.args.map(fill),
    env: fillAll(config.env),
    cwd: cwd === undefined || isAbsolute(cwd) || project === null ? cwd : resolve(project, cwd),
    url: config.url === undefined ? undefined : fill(config.url),
    headers: fillAll(config.headers),
  };
}

/** Resolves a program that is named relative to the project. */
function commandAt(command: string, project: string | null): string {
  return project !== null && /^\.{1,2}\//.test(command) ? resolve(project, command) : command;
}

function filledIn(inside: string, project: string | null, env: NodeJS.ProcessEnv): string {
  if (inside === "workspaceFolder") {
    if (project === null) throw new UserError(`\${${inside}} stands for a project's folder, and this server has none.`);
    return project;
  }
  if (inside.startsWith("input:")) throw new UserError(`\${${inside}} would have to be asked for, which IO does not do.`);
  const [, name = "", , other] = /^(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-(.*))?$/s.exec(inside) ?? [];
  if (name === "") throw new UserError(`\${${inside}} is nothing that IO can fill in.`);
  const value = env[name] || other;
  if (value === undefined) throw new UserError(`The variable ${name} is not set, which this server needs.`);
  return value;
}

/** The names of the variables that an entry sets or uses, shown to the user. */
export function variablesOf({ config }: Entry): string[] {
  if (!config) return [];
  const texts = [config.command ?? "", config.url ?? "", config.cwd ?? "", ...config.args];
  const inside = [...texts, ...Object.values(config.env), ...Object.values(config.headers)].flatMap((text) =>
    [...text.matchAll(/\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)/g)].map(([, name]) => name!),
  );
  const used = inside.filter((name) => name !== "workspaceFolder" && name !== "input" && name !== "env");
  return [...new Set([...Object.keys(config.env), ...Object.keys(config.headers), ...used])];
}

/** Covers everything whose change makes it another server. */
function hashOf({ command, args, env, cwd, url, headers }: McpServerConfig): string {
  return sha256(canonical({ command, args, env: Object.keys(env), cwd, url, headers: Object.keys(headers) }));
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 32);

/** The folders whose files may configure servers: the working folder, and its checkout. */
export function projectFolders(folder: string, repository: string | undefined): string[] {
  return [...new Set([folder, ...(repository === undefined ? [] : [dirname(repository)])])];
}
