import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import {
  type ClientConnection,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  client,
  methods,
  ndJsonStream,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { onTestFinished } from "vitest";
import type { TestTerminals } from "./acp-terminals.ts";
import { cleanEnvironment, IO } from "./daemon.ts";

/** A permission request to the editor, and the ways to answer it. */
export interface Permission {
  request: RequestPermissionRequest;
  answer: (outcome: RequestPermissionResponse["outcome"]) => void;
  fail: (error: Error) => void;
  /** Aborted when the agent cancels the request. */
  signal: AbortSignal;
}

/** An editor that has started `io acp` and talks to it through the official client. */
export interface Editor {
  agent: ClientConnection["agent"];
  /** Every session update received, in order. */
  updates: { session: string; update: SessionUpdate }[];
  permissions: Permission[];
  /** The text of all chunks of one kind in a session; by default, what the agent said. */
  said: (session: string, kind?: "agent_message_chunk" | "user_message_chunk" | "agent_thought_chunk") => string;
  of: <K extends SessionUpdate["sessionUpdate"]>(session: string, kind: K) => Extract<SessionUpdate, { sessionUpdate: K }>[];
  /** Every line that `io acp` has printed to standard output. */
  lines: () => string[];
  notes: () => string;
  /** Closes standard input and returns the exit code of `io acp`. */
  close: () => Promise<number | null>;
  kill: () => void;
}

const capabilities = (readTextFile: boolean, hasForms: boolean, terminal: boolean) => ({
  ...{ fs: { readTextFile, writeTextFile: false }, terminal },
  ...(hasForms && { elicitation: { form: {} } }),
});

/** A form that the editor shows. */
export interface ShownForm {
  request: CreateElicitationRequest;
  answer: (answer: CreateElicitationResponse) => void;
  signal: AbortSignal;
}

export interface EditorProcess {
  stdin: WritableStream<Uint8Array>;
  stdout: ReadableStream<Uint8Array>;
  lines: () => string[];
  notes: () => string;
  close: () => Promise<number | null>;
  kill: () => void;
}

/** Starts `io acp` as an editor would. */
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

/**
 * Starts an editor that uses the newest official client. `texts` are its open files; a request for an `undefined` one is never
 * answered.
 */
export async function startEditor(
  home: string,
  extra: NodeJS.ProcessEnv = {},
  texts?: Map<string, string | undefined>,
  forms?: ShownForm[],
  terminals?: TestTerminals,
): Promise<Editor> {
  const terminal = (): TestTerminals => {
    if (!terminals) throw new Error("this editor has no terminals");
    return terminals;
  };
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
    .onRequest(
      methods.client.elicitation.create,
      ({ params: request, signal }) =>
        new Promise<CreateElicitationResponse>((answer) => forms?.push({ request, answer, signal })),
    )
    .onRequest(methods.client.terminal.create, ({ params }) => terminal().create(params))
    .onRequest(methods.client.terminal.output, ({ params }) => terminal().output(params.terminalId))
    .onRequest(methods.client.terminal.waitForExit, ({ params }) => terminal().exit(params.terminalId))
    .onRequest(methods.client.terminal.kill, ({ params }) => terminal().kill(params.terminalId))
    .onRequest(methods.client.terminal.release, ({ params }) => terminal().release(params.terminalId))
    .onRequest(methods.client.fs.readTextFile, ({ params: { path } }) => {
      if (!texts?.has(path)) throw new Error(`not open here: ${path}`);
      const content = texts.get(path);
      return content === undefined ? new Promise<never>(() => {}) : { content };
    })
    .connect(ndJsonStream(io.stdin, io.stdout));
  onTestFinished(() => connection.close());
  const clientCapabilities = capabilities(texts !== undefined, forms !== undefined, terminals !== undefined);
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

/** The JSON-RPC error that a request fails with. */
export async function errorOf(request: Promise<unknown>): Promise<{ code: number; message: string }> {
  try {
    await request;
  } catch (error) {
    const { code, message } = error as { code: number; message: string };
    return { code, message };
  }
  throw new Error("the request was not refused");
}
