import {
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { UserError } from "../../lib/errors.ts";
import { BAD_REQUEST, type IoAccess, pageAddress, segment } from "./access.ts";
import { failureText, registerTools } from "./tools.ts";

const INSTRUCTIONS = `IO is an assistant that runs on the user's own machine, with its own tools, a long-term memory (the wiki), squads (lasting teams that work on projects) and a pipeline from issue to tested code.
Use io_ask to have something answered or done, io_delegate for work of a squad, io_swarm_start for an issue that is to become reviewed code, and io_wiki_search for what the user told IO before.
Work that takes long is a handle: ask again with io_message, io_task or io_swarm. Status "waiting" means that the user is being asked; only they can decide, with the command that is named. Tell them.`;

/** One MCP server for one client, built on IO's API. */
export function createMcpServer(access: IoAccess, version: string): McpServer {
  const server = new McpServer({ name: "io", title: "IO", version }, { instructions: INSTRUCTIONS });
  registerTools(server, access);
  registerResources(server, access);
  registerPrompts(server);
  return server;
}

function registerResources(server: McpServer, access: IoAccess): void {
  const { request } = access;
  const json = "application/json";
  const decoded = (value: string | string[] | undefined) => decodeURIComponent(String(value));
  async function told(uri: URL, mimeType: string, read: () => Promise<string>) {
    try {
      return { contents: [{ uri: uri.href, mimeType, text: await read() }] };
    } catch (error) {
      const isNotThere = error instanceof URIError || (error instanceof UserError && NOT_THERE.includes(error.code));
      throw isNotThere ? new ResourceNotFoundError(uri.href, notThere(error)) : new Error(failureText(error));
    }
  }
  const pages = new ResourceTemplate("io://wiki/{+path}", { list: undefined });
  server.registerResource("wiki", pages, { description: A_PAGE }, (uri, { path }) =>
    told(uri, "text/markdown", async () => (await request<{ content: string }>("GET", pageAddress(decoded(path)))).content),
  );
  const shown = (name: string, template: string, description: string, addressOf: (id: string) => string, textOf = asJson) =>
    server.registerResource(name, new ResourceTemplate(template, { list: undefined }), { description }, (uri, { id }) =>
      told(uri, textOf === asJson ? json : "text/x-diff", async () =>
        textOf(await request("GET", addressOf(segment(decoded(id))))),
      ),
    );
  shown("run-diff", "io://runs/{id}/diff", "What a run changed", (id) => `/api/runs/${id}/diff`, diffText);
  shown("run", "io://runs/{id}", "A run of the pipeline", (id) => `/api/runs/${id}`);
  shown("task", "io://tasks/{id}", "A task of a squad", (id) => `/api/tasks/${id}`);
  server.server.setRequestHandler("resources/list", async ({ params }) => listPages(access, params?.cursor));
}

/** Pages of the wiki, which may not fit into one response; a cursor is the last path of the previous page. */
async function listPages({ request }: IoAccess, cursor: string | undefined) {
  const after = cursor === undefined ? undefined : Buffer.from(cursor, "base64url").toString("utf8");
  if (after !== undefined && !after.startsWith(PAGES))
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "cursor: is none that was given out here.");
  const query = new URLSearchParams({ limit: String(LISTED), ...(after !== undefined && { after }) });
  const { items, next } = await request<{ items: { path: string; title: string }[]; next?: string }>(
    "GET",
    `/api/wiki/pages?${query}`,
  );
  const resources = items.map(({ path, title }) => {
    const name = path.slice(PAGES.length);
    const uri = `io://wiki/${name.split("/").map(encodeURIComponent).join("/")}`;
    return { uri, name, title, description: A_PAGE, mimeType: "text/markdown" };
  });
  return { resources, ...(next !== undefined && { nextCursor: Buffer.from(next).toString("base64url") }) };
}

const LISTED = 1_000;
/** The prefix of every wiki page. */
const PAGES = "pages/";
const A_PAGE = "A page of IO's long-term memory";
const NOT_THERE: readonly (string | undefined)[] = ["not_found", BAD_REQUEST];
const notThere = (error: unknown) =>
  error instanceof URIError ? `${BAD_REQUEST}: the address is malformed.` : failureText(error);

const asJson = (document: unknown): string => JSON.stringify(document, null, 2);
const diffText = (document: unknown): string => (document as { text: string }).text;

function registerPrompts(server: McpServer): void {
  const say = (text: string) => ({ messages: [{ role: "user" as const, content: { type: "text" as const, text } }] });
  const text = z.string().min(1).max(10_000);
  server.registerPrompt(
    "delegate",
    { description: "Have a squad of IO do something", argsSchema: z.object({ squad: text, task: text }) },
    ({ squad, task }) =>
      say(
        `Give this task to IO's squad "${squad}" with io_delegate, then follow it with io_task until it ends and tell me the result:\n\n${task}`,
      ),
  );
  server.registerPrompt(
    "swarm",
    { description: "Have IO's pipeline turn an issue into tested code", argsSchema: z.object({ project: text, issue: text }) },
    ({ project, issue }) =>
      say(
        `Start a run for the project ${project} with io_swarm_start, follow it with io_swarm until it ends, and tell me its outcome and branch. The issue:\n\n${issue}`,
      ),
  );
  server.registerPrompt(
    "recall",
    { description: "What IO remembers of something", argsSchema: z.object({ topic: text }) },
    ({ topic }) =>
      say(
        `Look for "${topic}" in IO's memory with io_wiki_search, read the pages that fit with io_wiki_read, and tell me what they say.`,
      ),
  );
}
