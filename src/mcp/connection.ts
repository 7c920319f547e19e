import { createHash } from "node:crypto";
import { pathToFileURL } from "node:url";
import {
  Client,
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  type Transport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import type { FormAnswer } from "../protocol/person-form.ts";
import { canonical } from "../tools/audit.ts";
import type { CallResult } from "./results.ts";
import { schemaTrouble } from "./schema.ts";
import { STOPPED, StdioTransport } from "./stdio.ts";

/** A tool as its server describes it. */
export interface ServerTool {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
  /** The hash of all fields above. */
  hash: string;
}

/** The tools of a server that can be offered, and notes on those left out. */
export interface ToolList {
  tools: ServerTool[];
  notes: string[];
}

/** An open connection to a server. */
export interface Connection {
  protocol: string;
  pid: number | null;
  /** The server's tools, or only the wanted ones. */
  list(signal: AbortSignal, wanted: readonly string[] | undefined): Promise<ToolList>;
  call(name: string, args: Record<string, unknown>, options: CallOptions): Promise<CallResult>;
  /** Whether a call failed because the server is gone or no longer knows this connection. */
  isLost(error: unknown): boolean;
  wantsLogin(error: unknown): boolean;
  /** Whether the server turned a call away before it did anything: without a login, or with a session that it has ended. */
  wasTurnedAway(error: unknown): boolean;
  close(): Promise<void>;
}

export interface CallOptions {
  signal: AbortSignal;
  timeoutMs: number;
  onProgress?: (text: string) => void;
  /** Answers what the server asks a person while the call runs. */
  onForm: (asked: unknown, signal: AbortSignal) => Promise<FormAnswer>;
}

export interface ConnectDeps {
  transport: () => Transport;
  version: string;
  /** The folder that a project's server may work in. */
  root: string | null;
  /** Whether to wait longer for the answer to which protocol the server speaks. */
  isSlow: boolean;
  signal: AbortSignal;
  /** Called when the connection ends by itself. */
  onEnd: (why: string) => void;
  /** Called when the server reports that its tools changed. */
  onToolsChanged: () => void;
}

/** A start that takes longer has failed. */
export const START_MS = 10_000;
const PROBE_MS = 3_000;
/** The most tools of one server that are read, and the total length of their descriptions and schemas. */
export const MOST_TOOLS = 128;
const MOST_PAGES = 20;
/** How often a server may ask a person within one call. */
const MOST_QUESTIONS = 5;
const LONGEST_LIST = 60_000;
const LONGEST_DESCRIPTION = 1_500;
/** The longest that a call may take, even while it reports progress. */
export const LONGEST_CALL_MS = 3_600_000;

/** Connects to a server with the newest protocol version that both support. */
export async function connect(deps: ConnectDeps): Promise<Connection> {
  try {
    return await open(deps, "auto");
  } catch (error) {
    // Some old servers exit when they receive anything before the handshake.
    const isOld = error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed && !deps.signal.aborted;
    if (!isOld) throw error;
    return open(deps, "legacy");
  }
}

async function open(deps: ConnectDeps, mode: "auto" | "legacy"): Promise<Connection> {
  const { version, root, isSlow, signal, onEnd, onToolsChanged } = deps;
  const transport = deps.transport();
  const client = new Client(
    { name: "io", version },
    {
      capabilities: { elicitation: { form: {} }, ...(root !== null && { roots: {} }) },
      versionNegotiation: { mode, probe: { timeoutMs: isSlow ? START_MS : PROBE_MS } },
      // Servers' schemas are not compiled: a malicious one could take for ever.
      jsonSchemaValidator: { getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }) },
      inputRequired: { maxRounds: MOST_QUESTIONS },
    },
  );
  if (root !== null) client.setRequestHandler("roots/list", () => ({ roots: [{ uri: pathToFileURL(root).href }] }));
  const asking = new Set<CallOptions["onForm"]>();
  client.setRequestHandler("elicitation/create", async ({ params }, { mcpReq }) => {
    // While several calls run, nobody knows to which of them the question belongs.
    const [onForm, ...others] = asking;
    return onForm && others.length === 0 ? onForm(params, mcpReq.signal) : { action: "decline" };
  });
  client.setNotificationHandler("notifications/tools/list_changed", onToolsChanged);
  let isOpen = false;
  client.onclose = () => {
    if (!isOpen) return;
    isOpen = false;
    onEnd(whyEnded(transport));
  };
  const stop = () => void transport.close().catch(() => undefined);
  signal.addEventListener("abort", stop, { once: true });
  try {
    await client.connect(transport, { timeout: START_MS, signal });
  } catch (error) {
    await transport.close().catch(() => undefined);
    if (mode === "auto" && error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed) throw error;
    throw explained(error, transport);
  } finally {
    signal.removeEventListener("abort", stop);
  }
  isOpen = true;
  return {
    protocol: client.getNegotiatedProtocolVersion() ?? "unknown",
    pid: transport instanceof StdioTransport ? transport.pid : null,
    list: (within, wanted) =>
      listTools(client, within, wanted).catch((error: unknown) => {
        throw explained(error, transport);
      }),
    async call(name, args, { signal: ends, timeoutMs, onProgress, onForm }) {
      const silence = createSilence(timeoutMs);
      const over = new AbortController();
      const onAsked = oneAtATime((asked, signal) =>
        silence.without(() => onForm(asked, AbortSignal.any([signal, ends, over.signal]))),
      );
      asking.add(onAsked);
      try {
        const result = await client.request(
          { method: "tools/call", params: { name, arguments: args } },
          {
            signal: AbortSignal.any([ends, silence.signal]),
            ...{ timeout: LONGEST_CALL_MS, maxTotalTimeout: LONGEST_CALL_MS },
            onprogress({ progress, total, message }) {
              silence.begin();
              onProgress?.([`${progress}${total === undefined ? "" : ` of ${total}`}`, message].filter(Boolean).join(": "));
            },
          },
        );
        return result as CallResult;
      } catch (error) {
        throw silence.signal.aborted && !ends.aborted ? silence.signal.reason : error;
      } finally {
        silence.end();
        over.abort();
        asking.delete(onAsked);
      }
    },
    isLost: (error) =>
      !(transport instanceof StdioTransport) &&
      !(error instanceof ProtocolError) &&
      !(error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout),
    wantsLogin: isLoginError,
    wasTurnedAway: (error) => isLoginError(error) || hasStatus(error, 404),
    async close() {
      isOpen = false;
      await client.close();
    },
  };
}

/** Shows a person one form at a time and only a few in all, so that a server cannot flood them with forms. */
function oneAtATime(onForm: CallOptions["onForm"]): CallOptions["onForm"] {
  let asked = 0;
  let isOpen = false;
  return async (form, signal) => {
    asked += 1;
    if (isOpen || asked > MOST_QUESTIONS) return { action: "decline" };
    isOpen = true;
    return onForm(form, signal).finally(() => {
      isOpen = false;
    });
  };
}

/** Aborts when a server is silent for this long. The timer stops while a person is being asked. */
function createSilence(ms: number) {
  const stop = new AbortController();
  const late = () => stop.abort(new SdkError(SdkErrorCode.RequestTimeout, `it was silent for ${ms / 1_000} s`));
  let timer = setTimeout(late, ms);
  let isOver = false;
  const begin = () => {
    clearTimeout(timer);
    if (!isOver) timer = setTimeout(late, ms);
  };
  return {
    signal: stop.signal,
    begin,
    end(): void {
      isOver = true;
      clearTimeout(timer);
    },
    async without<T>(work: () => Promise<T>): Promise<T> {
      clearTimeout(timer);
      return work().finally(begin);
    },
  };
}

/** Why a connection ended, as the program reported it. */
function whyEnded(transport: Transport): string {
  if (!(transport instanceof StdioTransport)) return "the connection was lost";
  const said = transport.lastErrors();
  return [transport.ending ?? "it ended", said && `It printed: ${said}`].filter(Boolean).join(". ");
}

/** Prefers the reason why a program ended to the SDK's time-out. */
function explained(error: unknown, transport: Transport): unknown {
  if (transport instanceof StdioTransport && transport.ending !== undefined && transport.ending !== STOPPED)
    return new Error(whyEnded(transport), { cause: error });
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout)
    return new Error(`it did not answer within ${START_MS / 1_000} s`, { cause: error });
  return error;
}

/** Reads all tools that can be offered, page by page, until there are too many. */
async function listTools(client: Client, signal: AbortSignal, wanted: readonly string[] | undefined): Promise<ToolList> {
  if (!client.getServerCapabilities()?.tools) return { tools: [], notes: ["it offers no tools"] };
  const tools = new Map<string, ServerTool>();
  const notes: string[] = [];
  let length = 0;
  let left = 0;
  let cursor: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const answer = await client.request(
      { method: "tools/list", params: cursor === undefined ? {} : { cursor } },
      { signal, timeout: START_MS },
    );
    for (const { name, description = "", inputSchema } of answer.tools) {
      if (wanted && !wanted.includes(name)) continue;
      const trouble = tools.has(name) ? "is there twice" : name.length > 200 ? "has too long a name" : schemaTrouble(inputSchema);
      const size = trouble === undefined ? JSON.stringify(inputSchema).length + description.length : 0;
      if (tools.size >= MOST_TOOLS || length + size > LONGEST_LIST) left += 1;
      else if (trouble !== undefined) notes.push(`${name.slice(0, 60)} is left out: it ${trouble}`);
      else {
        length += size;
        tools.set(name, describedBy({ name, description: description.slice(0, LONGEST_DESCRIPTION), inputSchema }));
      }
    }
    cursor = answer.nextCursor;
    if (cursor === undefined || left > 0) break;
  }
  if (left > 0 || cursor !== undefined)
    notes.push(`only ${tools.size} of its tools are offered, because there are too many; name those you want in "tools"`);
  return { tools: [...tools.values()], notes };
}

const describedBy = (tool: Omit<ServerTool, "hash">): ServerTool => ({
  ...tool,
  hash: createHash("sha256").update(canonical(tool)).digest("hex"),
});

/** Whether a server of the newest protocol said so only after it was taken for an old one: it starts slowly. */
export const isTooLate = (error: unknown): boolean =>
  error instanceof ProtocolError && error.code === ProtocolErrorCode.UnsupportedProtocolVersion;

/** Whether a server requires a login, or rejects the current one. */
export function isLoginError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error instanceof UnauthorizedError || hasStatus(error, 401) || isLoginError(error.cause);
}

function hasStatus(error: unknown, wanted: number): boolean {
  if (!(error instanceof Error)) return false;
  const { data, status } = error as Error & { data?: { status?: unknown }; status?: unknown };
  return data?.status === wanted || status === wanted;
}
