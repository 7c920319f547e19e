import { resolve } from "node:path";
import type { Command } from "commander";
import { rawConfig, updateConfig } from "../home/config.ts";
import { ensureHome } from "../home/paths.ts";
import { conflict, ExitCode, missing, UserError, usageError } from "../lib/errors.ts";
import type { McpServer, McpServerDetails } from "../protocol/mcp.ts";
import { askYesNo, confirm } from "./input.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";
import { openAddress } from "./web.ts";

interface OfProject extends Json {
  project?: string;
}
interface NewServer extends Json {
  url?: string;
  sse?: boolean;
  env?: string[];
  header?: string[];
  cwd?: string;
  read?: string[];
}

const PROJECT_OPTION = ["--project <dir>", "also those that the files of this project name"] as const;

/** `io mcp`: the user's MCP servers. Besides the page, only here can a person enable them. */
export function mcpServerCommands(mcp: Command, shell: Shell): void {
  mcp
    .command("list")
    .description("your MCP servers: where each is written down, its state and its tools")
    .option(...PROJECT_OPTION)
    .option(...JSON_OPTION)
    .action(async ({ project, json }: OfProject) => {
      const list = await shell.client().request<{ items: McpServer[] }>("GET", `/api/mcp${queryOf(project)}`);
      shell.print(list, () => list.items.map(line).join("\n") || "There are no MCP servers: io mcp add <name> -- <command>", {
        json,
      });
    });

  mcp
    .command("add")
    .description("write a server into config.json: a program after --, or an address with --url")
    .argument("<name>", "what it is called here")
    .argument("[command...]", "the program and its arguments, after --")
    .option("--url <address>", "the address of a server that runs already")
    .option("--sse", "it speaks the older protocol over server-sent events")
    .option("--env <name=value...>", "variables for the program")
    .option("--header <name:value...>", "headers for the address")
    .option("--cwd <dir>", "the folder the program is started in")
    .option("--read <tool...>", "tools that only read, and need no approval")
    .option(...JSON_OPTION)
    .action(async (name: string, command: string[], options: NewServer) => {
      const server = serverFrom(command, options);
      if (!shell.daemon()) {
        ensureHome(shell.paths);
        const servers = Object(rawConfig(shell.paths.config).mcpServers) as Record<string, unknown>;
        if (Object.hasOwn(servers, name)) throw conflict(`There is a server called "${name}" already.`);
        updateConfig(shell.paths.config, { mcpServers: { ...servers, [name]: server } });
        shell.print({ name }, `${name} is in config.json, and is started with the daemon.`, options);
        return;
      }
      await shell.client().request<McpServerDetails>("POST", "/api/mcp", { name, ...server });
      printStart(shell, await startOf(shell, name), options);
    });

  mcp
    .command("remove")
    .description("take a server out of config.json")
    .argument("<name>")
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .action(async (name: string, { yes, json }: Json & { yes?: boolean }) => {
      const sure = () => confirm(shell, `Remove the server ${name} from config.json?`, yes);
      if (shell.daemon()) {
        const client = shell.client();
        if (!yes) await client.request("GET", route(name));
        await sure();
        const removed = await client.request<McpServer>("DELETE", route(name));
        shell.print(removed, `Removed ${removed.name}.`, { json });
        return;
      }
      const { [name]: gone, ...servers } = Object(rawConfig(shell.paths.config).mcpServers) as Record<string, unknown>;
      if (gone === undefined) throw missing(`config.json names no MCP server "${name}".`);
      await sure();
      updateConfig(shell.paths.config, { mcpServers: servers });
      shell.print({ name }, `Removed ${name}.`, { json });
    });

  mcp
    .command("enable")
    .description("show a server as it is now, switch it on, and accept its tools as they are")
    .argument("<name>")
    .option("--project <dir>", "the project whose file names it")
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .action(async (name: string, { project, yes, json }: OfProject & { yes?: boolean }) => {
      const shown = await shell.client().request<McpServerDetails>("GET", `${route(name)}${queryOf(project)}`);
      shell.note(describe(shown));
      const agreed = yes || (shell.isTerminal && (await askYesNo("Switch it on?")));
      if (!agreed && !shell.isTerminal) throw usageError("Nobody can be asked here: add --yes if that is what you want.");
      if (!agreed) throw new UserError("Nothing was changed.");
      const given = { ...folderOf(project), hash: shown.hash };
      printStart(shell, await shell.client().request<McpServerDetails>("POST", `${route(name)}/enable`, given), { json });
    });

  mcp
    .command("disable")
    .description("switch a server off")
    .argument("<name>")
    .option("--project <dir>", "the project whose file names it")
    .option(...JSON_OPTION)
    .action(async (name: string, { project, json }: OfProject) => {
      const changed = await shell.client().request<McpServer>("POST", `${route(name)}/disable`, folderOf(project));
      shell.print(changed, `${changed.name} is off.`, { json });
    });

  mcp
    .command("test")
    .description("start a server if it is not there, and say what it offers")
    .argument("<name>")
    .option("--project <dir>", "the project whose file names it")
    .option(...JSON_OPTION)
    .action(async (name: string, { project, json }: OfProject) => {
      printStart(shell, await startOf(shell, name, project), { json });
    });
  loginCommands(mcp, shell);
}

interface LoginOptions extends OfProject {
  browser: boolean;
}

/** Logging in to servers that require it. */
function loginCommands(mcp: Command, shell: Shell): void {
  mcp
    .command("login")
    .description("log in to a server that asks for it, in a browser")
    .argument("<name>")
    .option("--project <dir>", "the project whose file names it")
    .option("--no-browser", "only print the address; the daemon waits ten minutes for the login")
    .option(...JSON_OPTION)
    .action(async (name: string, { project, browser, json }: LoginOptions) => {
      const begun = await shell.client().request<{ url: string }>("POST", `${route(name)}/login`, folderOf(project));
      shell.print(begun, begun.url, { json });
      if (!browser || json || !shell.isTerminal) return;
      // The server chose the address, so the person sees its host before the browser opens it.
      shell.note(`The server ${name} names this address. It leads to ${new URL(begun.url).host}.`);
      if (await askYesNo("Open it in the browser?")) openAddress(shell, begun.url);
      shell.note("Log in there; this waits for you. Ctrl-C ends the wait, not the login.");
      for (const end = Date.now() + LOGIN_MS; Date.now() < end; ) {
        const now = await shell.client().request<McpServerDetails>("GET", `${route(name)}${queryOf(project)}`);
        if (now.state === "ready") return shell.note(line(now));
        await new Promise((next) => setTimeout(next, 1_000));
      }
    });

  mcp
    .command("logout")
    .description("forget the login of a server")
    .argument("<name>")
    .option("--project <dir>", "the project whose file names it")
    .option(...JSON_OPTION)
    .action(async (name: string, { project, json }: OfProject) => {
      const server = await shell.client().request<McpServerDetails>("POST", `${route(name)}/logout`, folderOf(project));
      shell.print(server, () => line(server), { json });
    });
}

const LOGIN_MS = 600_000;

const startOf = (shell: Shell, name: string, project?: string) =>
  shell.client().request<McpServerDetails>("POST", `${route(name)}/test`, folderOf(project));

/** Prints the result of a start; a failed start fails the command. */
function printStart(shell: Shell, server: McpServerDetails, { json }: Json): void {
  shell.print(server, () => [line(server), ...server.tools.map((tool) => `  ${tool}`)].join("\n"), { json });
  if (server.state !== "ready") process.exitCode = ExitCode.failed;
}

function serverFrom([program, ...args]: string[], { url, sse, env, header, cwd, read }: NewServer): Record<string, unknown> {
  if ((program === undefined) === (url === undefined))
    throw usageError(
      "Name a program after --, or an address with --url: one of them. io mcp add files -- npx -y some-server /srv",
    );
  const common = read && { read };
  if (url !== undefined)
    return { type: sse ? "sse" : "http", url, ...(header && { headers: pairs("--header", header, ":") }), ...common };
  return {
    command: program,
    ...(args.length > 0 && { args }),
    ...(env && { env: pairs("--env", env, "=") }),
    ...(cwd && { cwd: resolve(cwd) }),
    ...common,
  };
}

function pairs(option: string, given: readonly string[], sign: string): Record<string, string> {
  return Object.fromEntries(
    given.map((pair) => {
      const at = pair.indexOf(sign);
      if (at < 1) throw usageError(`${option}: every value is a name, "${sign}" and a text.`);
      return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
    }),
  );
}

function line({ name, from, project, transport, state, detail, tools }: McpServer): string {
  const file = from === "acp" ? "lent by an editor in" : from === "vscode" ? ".vscode/mcp.json of" : ".mcp.json of";
  const where = project === null ? "config.json" : `${file} ${project}`;
  const count = state === "ready" ? `, ${tools.length === 1 ? "1 tool" : `${tools.length} tools`}` : "";
  return `${name}  ${transport}  ${state}${count}  (${where})${detail === null ? "" : `\n    ${detail}`}`;
}

/** What a person reviews: no values of variables. */
function describe(server: McpServerDetails): string {
  const { command, args, url, cwd, variables, withheld } = server;
  return [
    line(server),
    ...(command === null ? [] : [`  runs: ${[command, ...args].map((word) => JSON.stringify(word)).join(" ")}`]),
    ...(url === null ? [] : [`  reaches: ${url}`]),
    ...(cwd === null ? [] : [`  in: ${cwd}`]),
    ...(variables.length === 0 ? [] : [`  is given: ${variables.join(", ")}`]),
    ...(withheld.length === 0 ? [] : [`  new or changed tools: ${withheld.join(", ")}`]),
  ].join("\n");
}

const folderOf = (project: string | undefined) => (project === undefined ? {} : { project: resolve(project) });

function queryOf(project: string | undefined): string {
  return project === undefined ? "" : `?${new URLSearchParams(folderOf(project) as { project: string })}`;
}

const route = (name: string) => `/api/mcp/${encodeURIComponent(name)}`;
