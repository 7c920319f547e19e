import { rawConfig, updateConfig } from "../home/config.ts";
import { readDaemonFile } from "../home/daemon-file.ts";
import type { LiveConfig } from "../home/live-config.ts";
import { type McpServerConfig, McpServers as Servers } from "../home/mcp-config.ts";
import type { Paths } from "../home/paths.ts";
import { conflict, missing, usageError } from "../lib/errors.ts";
import { quoted } from "../lib/quoted.ts";
import { explainIssues } from "../lib/validation.ts";
import { fillIn } from "../mcp/entries.ts";
import { createMcp, markOf } from "../mcp/mcp.ts";
import { createLogins } from "../mcp/oauth.ts";
import { createTransports } from "../mcp/transports.ts";
import { endMarked } from "../process/leftover-processes.ts";
import { createConversationRows } from "../store/conversations.ts";
import { createState } from "../store/state.ts";
import type { Closers } from "./closers.ts";
import type { Core } from "./core.ts";

export interface McpPartsDeps {
  core: Core;
  env: NodeJS.ProcessEnv;
  paths: Paths;
  version: string;
  settings: LiveConfig;
  closers: Closers;
}

type Written = Record<string, Partial<McpServerConfig>>;

/** The user's MCP servers, following config.json. Loads no protocol code before there is a server. */
export function buildMcp({ core, env, paths, version, settings, closers }: McpPartsDeps) {
  const { store, hub, sandbox, redactor, log } = core;
  const mark = markOf(paths.home);
  const rows = createConversationRows(store);

  function write(change: (servers: Written) => Written): void {
    const servers = (rawConfig(paths.config).mcpServers ?? {}) as Written;
    settings.replace(updateConfig(paths.config, { mcpServers: change(servers) }));
    hub.emit({ type: "config.changed", data: { keys: ["mcpServers"] } });
  }

  const logins = createLogins({
    state: createState(store),
    callbackUrl: () => `http://127.0.0.1:${readDaemonFile(paths.daemon)?.port}/oauth/callback`,
    hide: redactor.hide,
  });
  const mcp = createMcp({
    logins,
    mayStart: (conversation) => (rows.find(conversation)?.mode ?? settings.current().mode) !== "plan",
    addressOf: (entry) => fillIn(entry, env).url ?? "",
    servers: () => settings.current().mcpServers,
    setDisabled: (name, disabled) =>
      write((servers) => {
        const { disabled: _before, ...server } = servers[name] ?? {};
        return { ...servers, [name]: disabled ? { ...server, disabled } : server };
      }),
    state: createState(store),
    version,
    openTransport: createTransports({ home: paths.home, env, wrap: sandbox.wrap, mark, hide: redactor.hide, logins }),
    endLeftovers: async () => {
      // A sandbox with its own process list has ended all of them.
      const status = await sandbox.status();
      if (status.kind === "open" || !status.processes) await endMarked(mark);
    },
    clean: redactor.clean,
    log,
  });
  closers.add(mcp.close);
  closers.add(
    hub.subscribe(({ type, data }) => {
      if (type === "config.changed" && data.keys.includes("mcpServers")) mcp.follow();
    }),
  );
  return {
    ...mcp,
    /** Writes a new server into config.json, and starts it. */
    add(name: string, server: Partial<McpServerConfig>): void {
      if (Object.hasOwn(settings.current().mcpServers, name))
        throw conflict(`There is a server called ${quoted(name, 80)} already.`);
      const read = Servers.safeParse({ [name]: server });
      if (!read.success) throw usageError(`The server cannot be added: ${explainIssues(read.error)}.`);
      write((servers) => ({ ...servers, [name]: server }));
    },
    remove(name: string): void {
      if (!Object.hasOwn(settings.current().mcpServers, name))
        throw missing(`config.json names no MCP server ${quoted(name, 80)}.`);
      write((servers) => Object.fromEntries(Object.entries(servers).filter(([each]) => each !== name)));
    },
  };
}
export type McpServers = ReturnType<typeof buildMcp>;
