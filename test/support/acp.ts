import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import {
  type ClientConnection,
  client,
  methods,
  ndJsonStream,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { onTestFinished } from "vitest";
import { cleanEnvironment, IO } from "./daemon.ts";

/** What an editor is asked about, and how it answers. */
export interface Permission {
  request: RequestPermissionRequest;
  answer: (outcome: RequestPermissionResponse["outcome"]) => void;
  fail: (error: Error) => void;
  /** Whether the question was taken back. */
  signal: AbortSignal;
}

/** An editor that has started `io acp`, with the official client. */
export interface Editor {
  agent: ClientConnection["agent"];
  /** Everything it was told, in order. */
  updates: { session: string; update: SessionUpdate }[];
  permissions: Permission[];
  /** What the agent has said in a session. */
  said: (session: string, kind?: "agent_message_chunk" | "user_message_chunk" | "agent_thought_chunk") => string;
  of: <K extends SessionUpdate["sessionUpdate"]>(session: string, kind: K) => Extract<SessionUpdate, { sessionUpdate: K }>[];
  /** Every line on standard output. */
  lines: () => string[];
  notes: () => string;
  /** Closes standard input, and tells how `io acp` ended. */
  close: () => Promise<number | null>;
  kill: () => void;
}

const capabilities = (readTextFile: boolean) => ({ fs: { readTextFile, writeTextFile: false }, terminal: false });

export interface EditorProcess {
  stdin: WritableStream<Uint8Array>;
  stdout: ReadableStream<Uint8Array>;
  lines: () => string[];
  notes: () => string;
  close: () => Promise<number | null>;
  kill: () => void;
}

/** Starts `io acp` as an editor does. */
export function startAcp(home: string, extra: NodeJS.ProcessEnv = {}): EditorProcess {
  const child = spawn(process.execPath, [IO, "acp"], { env: cleanEnvironment(home, extra), stdio: ["pipe", "pipe", "pipe"] });
  let printed = "";
  let noted = "";
  child.stdout.on("data", (chunk) => {
    printed += chunk;
  });
  child.stderr.on("data", (chunk) => {
    noted += chunk;
  });
  const ended = new Promise<number | null>((done) => child.once("close", done));
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await ended;
  });
  return {
    stdin: Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
    stdout: Readable.toWeb(child.stdout) as unknown as ReadableStream<Uint8Array>,
    lines: () => printed.split("\n").filter((line) => line !== ""),
    notes: () => noted,
    close: () => {
      child.stdin.end();
      return ended;
    },
    kill: () => void child.kill("SIGKILL"),
  };
}

/** An editor with the newest official client. It holds these texts, if any are given; what is undefined it never answers for. */
export async function startEditor(
  home: string,
  extra: NodeJS.ProcessEnv = {},
  texts?: Map<string, string | undefined>,
): Promise<Editor> {
  const io = startAcp(home, extra);
  const updates: Editor["updates"] = [];
  const permissions: Permission[] = [];
  const connection = client({ name: "tests" })
    .onNotification(methods.client.session.update, ({ params }) => {
      updates.push({ session: params.sessionId, update: params.update });
    })
    .onRequest(
      methods.client.session.requestPermission,
      ({ params: request, signal }) =>
        new Promise<RequestPermissionResponse>((resolve, reject) => {
          permissions.push({ request, signal, answer: (outcome) => resolve({ outcome }), fail: reject });
        }),
    )
    .onRequest(methods.client.fs.readTextFile, ({ params: { path } }) => {
      if (!texts?.has(path)) throw new Error(`not open here: ${path}`);
      const content = texts.get(path);
      return content === undefined ? new Promise<never>(() => {}) : { content };
    })
    .connect(ndJsonStream(io.stdin, io.stdout));
  onTestFinished(() => connection.close());
  const clientCapabilities = capabilities(texts !== undefined);
  await connection.agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities });
  const of: Editor["of"] = (session, kind) =>
    updates.flatMap(({ session: of, update }) => (of === session && update.sessionUpdate === kind ? [update as never] : []));
  return {
    agent: connection.agent,
    updates,
    permissions,
    of,
    said: (session, kind = "agent_message_chunk") =>
      of(session, kind)
        .map(({ content }) => (content.type === "text" ? content.text : ""))
        .join(""),
    ...{ lines: io.lines, notes: io.notes, close: io.close, kill: io.kill },
  };
}

/** The code of the JSON-RPC error that a request ends with. */
export async function errorOf(request: Promise<unknown>): Promise<{ code: number; message: string }> {
  try {
    await request;
  } catch (error) {
    const { code, message } = error as { code: number; message: string };
    return { code, message };
  }
  throw new Error("the request was not refused");
}
