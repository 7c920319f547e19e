import type { AgentContext, McpServer, PermissionOption, RequestPermissionRequest } from "@agentclientprotocol/sdk";
import { named } from "../../lib/quoted.ts";
import type { McpServerDetails } from "../../protocol/mcp.ts";
import { mcpArguments } from "../../protocol/mcp-command.ts";
import { persistently, segment } from "../mcp/access.ts";
import type { AcpAccess } from "./access.ts";
import { textBlock } from "./content.ts";
import { fenced } from "./tools.ts";

export interface EditorServersDeps {
  access: AcpAccess;
  /** The daemon's route for these servers. */
  path: string;
  folder: string;
  session: string;
  client: Pick<AgentContext, "request">;
  /** Shows text in the session. */
  say: (text: string) => Promise<void>;
}

const ALLOW: PermissionOption = { optionId: "allow-once", name: "Start it for this session", kind: "allow_once" };
const DENY: PermissionOption = { optionId: "deny", name: "Do not start it", kind: "reject_once" };

/** The MCP servers that an editor lends to its session. */
export function createEditorServers({ access, path, folder, session, client, say }: EditorServersDeps) {
  let servers: readonly McpServer[] = [];
  /** The servers that no person has seen yet, and the answers of this session, by hash. */
  let unseen: McpServerDetails[] = [];
  const answered = new Map<string, "allowed" | "denied">();
  let asking: Promise<void> | undefined;

  const note = ({ name, state, detail }: McpServerDetails) => {
    if (state !== "ready") access.note(`The MCP server ${name} is ${state}${detail === null ? "" : `: ${detail}`}`);
  };
  const start = ({ name, hash }: McpServerDetails) =>
    access.request<McpServerDetails>("POST", `${path}/${segment(name)}/allow`, { hash }).then(note);

  async function lend(): Promise<void> {
    const given = { folder, servers: asConfig(servers) };
    const { items } = await persistently(() => access.request<{ items: McpServerDetails[] }>("PUT", path, given));
    unseen = items.filter(({ state, hash }) => state === "untrusted" && !answered.has(hash));
    for (const server of items)
      if (server.state === "untrusted" && answered.get(server.hash) === "allowed") await start(server);
      else note(server);
  }

  /** An editor may close the question without an answer: the next prompt asks again. */
  async function askAbout(server: McpServerDetails, withdrawn: AbortSignal): Promise<void> {
    const request: RequestPermissionRequest = {
      sessionId: session,
      toolCall: { toolCallId: `mcp-server-${server.hash}`, ...shown(server) },
      options: [ALLOW, DENY],
    };
    const options = { cancellationSignal: withdrawn, stopWaitingOnCancel: true };
    const answer = await client.request("session/request_permission", request, options).catch(() => undefined);
    if (withdrawn.aborted) return;
    const chosen = answer?.outcome.outcome === "selected" ? answer.outcome.optionId : undefined;
    if (chosen === ALLOW.optionId) {
      answered.set(server.hash, "allowed");
      await start(server);
    } else {
      if (chosen === DENY.optionId) answered.set(server.hash, "denied");
      await say(`The MCP server ${named(server.name, 80)} is not started. ${forGood(server)}\n\n`);
    }
    if (answered.has(server.hash)) unseen = unseen.filter(({ hash }) => hash !== server.hash);
  }

  async function askAll(withdrawn: AbortSignal): Promise<void> {
    // It may have been enabled elsewhere meanwhile.
    await lend();
    for (const server of unseen) if (!withdrawn.aborted) await askAbout(server, withdrawn);
  }

  return {
    /** Lends exactly these servers to the conversation, and waits for them to start. */
    async use(given: readonly McpServer[]): Promise<void> {
      const before = servers;
      servers = given;
      if (given.length > 0 || before.length > 0) await lend();
    },
    /** Asks the person about servers that nobody has seen, before the session's first prompt is sent. */
    async settle(withdrawn: AbortSignal): Promise<void> {
      if (unseen.length === 0 && !asking) return;
      asking ??= askAll(withdrawn).finally(() => {
        asking = undefined;
      });
      await asking;
    },
    /** Lends them again to a restarted daemon, which has forgotten them. */
    async renew(): Promise<void> {
      if (servers.length > 0) await lend();
    },
    async close(): Promise<void> {
      if (servers.length > 0) await access.request("DELETE", path);
    },
  };
}

const forGood = (server: McpServerDetails) => `To switch it on for good: io mcp enable ${mcpArguments(server)}`;

/** What a person sees: no values of variables or headers. */
function shown(server: McpServerDetails) {
  const { name, command, args, url, cwd, project, variables } = server;
  const what = command === null ? `reaches ${url}` : [command, ...args].map((word) => JSON.stringify(word)).join(" ");
  const lines = [
    "This editor brings an MCP server along. It works outside the sandbox that commands are held in.",
    fenced(what),
    `in ${fenced(cwd ?? project ?? "")}`,
    ...(variables.length === 0 ? [] : [`It is given: ${variables.map((each) => named(each, 80)).join(", ")}`]),
    forGood(server),
  ];
  return {
    title: `Start the MCP server ${named(name, 80)}`,
    kind: "execute" as const,
    status: "pending" as const,
    content: [{ type: "content" as const, content: textBlock(lines.join("\n\n")) }],
  };
}

/** An editor's servers in the format of config.json. */
function asConfig(servers: readonly McpServer[]): Record<string, unknown> {
  const texts = (pairs: readonly { name: string; value: string }[]) =>
    Object.fromEntries(pairs.map(({ name, value }) => [name, value]));
  return Object.fromEntries(
    servers.map((server) => {
      if ("url" in server) return [server.name, { type: server.type, url: server.url, headers: texts(server.headers) }];
      return [server.name, { command: server.command, args: server.args, env: texts(server.env) }];
    }),
  );
}
