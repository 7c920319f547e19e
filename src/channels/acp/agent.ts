import { isAbsolute } from "node:path";
import {
  type AgentApp,
  type AgentContext,
  agent,
  type McpServer,
  methods,
  PROTOCOL_VERSION,
  RequestError,
} from "@agentclientprotocol/sdk";
import { UserError } from "../../lib/errors.ts";
import { newId } from "../../lib/ids.ts";
import { isFolder } from "../../lib/is-folder.ts";
import { quoted } from "../../lib/quoted.ts";
import type { Status } from "../../protocol/api.ts";
import type { ConversationInfo } from "../../protocol/conversations.ts";
import { Conversation } from "../../protocol/messages.ts";
import { persistently } from "../mcp/access.ts";
import type { AcpAccess } from "./access.ts";
import { createCommands } from "./commands.ts";
import { asRequestError, invalid } from "./errors.ts";
import { listSessions } from "./list.ts";
import { createSession, type Session } from "./session.ts";
import type { EditorOffers } from "./texts.ts";

const SETUP = {
  id: "io-setup",
  name: "Set up IO",
  description: 'Choose which model answers: "io setup" in a terminal.',
};
const CAPABILITIES = {
  loadSession: true,
  mcpCapabilities: { http: true },
  promptCapabilities: { image: true, embeddedContext: true },
  sessionCapabilities: { list: {}, resume: {}, close: {} },
};

/** An editor's request to open an existing session. */
interface Opening {
  sessionId: string;
  cwd: string;
  mcpServers?: McpServer[];
}

/** IO as an editor's agent, built on the daemon's API. */
export function createAcpAgent(access: AcpAccess, version: string): AgentApp {
  const sessions = new Map<string, Session>();
  let offers: EditorOffers = { texts: false, forms: false, terminals: false };
  const parts = { access, commands: createCommands(access), offers: () => offers };
  const sessionOf = (id: string): Session => {
    const session = sessions.get(id);
    if (!session) throw RequestError.sessionNotFound(id);
    return session;
  };

  /** Opens the session of an existing conversation. */
  async function opened({ sessionId: id, cwd, mcpServers = [] }: Opening, client: AgentContext): Promise<Session> {
    if (!isAbsolute(cwd)) throw invalid(`cwd: ${quoted(cwd, 300)} is not a whole path.`);
    await access.ready();
    const known = await conversationCalled(id);
    const session = sessions.get(id) ?? createSession({ ...parts, client, id, folder: known.folder ?? cwd, known });
    sessions.set(id, session);
    await session.useServers(mcpServers);
    return session;
  }
  async function conversationCalled(id: string): Promise<ConversationInfo> {
    if (!Conversation.safeParse(id).success) throw RequestError.sessionNotFound(id);
    try {
      return await persistently(() => access.request<ConversationInfo>("GET", `/api/conversations/${id}`));
    } catch (error) {
      throw error instanceof UserError && error.code === "not_found" ? RequestError.sessionNotFound(id) : error;
    }
  }
  /** The modes and options that an editor can choose. It gets the commands only once it knows the session. */
  async function choices(session: Session) {
    await session.settings.loadModels();
    setImmediate(() => void session.tellCommands().catch((error: unknown) => access.note(String(error))));
    return { modes: session.settings.modes(), configOptions: session.settings.options() };
  }

  return agent({ name: "io" })
    .onRequest(methods.agent.initialize, ({ params: { clientCapabilities } }) => {
      offers = {
        texts: clientCapabilities?.fs?.readTextFile === true,
        forms: clientCapabilities?.elicitation?.form != null,
        terminals: clientCapabilities?.terminal === true,
      };
      return {
        protocolVersion: PROTOCOL_VERSION,
        agentInfo: { name: "io", title: "IO", version },
        agentCapabilities: CAPABILITIES,
        authMethods: [clientCapabilities?.auth?.terminal ? { ...SETUP, type: "terminal" as const, args: ["--setup"] } : SETUP],
      };
    })
    .onRequest(methods.agent.authenticate, async ({ params: { methodId } }) => {
      if (methodId !== SETUP.id) throw invalid(`There is no way to log in called ${quoted(methodId)}. IO has ${SETUP.id}.`);
      return answered(async () => {
        await access.ready();
        const { engine } = await access.request<Status>("GET", "/api/status");
        if (engine.kind === "rehearsal") throw RequestError.authRequired(undefined, SETUP.description);
        return {};
      });
    })
    .onRequest(methods.agent.session.new, async ({ params: { cwd, mcpServers }, client }) => {
      checkFolder(cwd);
      const id = newId("acp").replace("_", "-");
      const session = createSession({ ...parts, client, id, folder: cwd });
      sessions.set(id, session);
      return answered(async () => {
        if (mcpServers.length > 0) await access.ready();
        await session.useServers(mcpServers);
        return { sessionId: id, ...(await choices(session)) };
      });
    })
    .onRequest(methods.agent.session.load, ({ params, client }) =>
      answered(async () => {
        const session = await opened(params, client);
        await session.open({ replays: true });
        return choices(session);
      }),
    )
    .onRequest(methods.agent.session.resume, ({ params, client }) =>
      answered(async () => {
        const session = await opened(params, client);
        await session.open({ replays: false });
        return choices(session);
      }),
    )
    .onRequest(methods.agent.session.list, ({ params }) =>
      answered(async () => {
        await access.ready();
        return listSessions(access, params);
      }),
    )
    .onRequest(methods.agent.session.close, ({ params: { sessionId } }) =>
      answered(async () => {
        await sessionOf(sessionId).close();
        sessions.delete(sessionId);
        return {};
      }),
    )
    .onRequest(methods.agent.session.setMode, ({ params: { sessionId, modeId } }) =>
      answered(async () => {
        await sessionOf(sessionId).setMode(modeId);
        return {};
      }),
    )
    .onRequest(methods.agent.session.setConfigOption, ({ params }) =>
      answered(async () => {
        const session = sessionOf(params.sessionId);
        await session.setOption(params.configId, params.value);
        return { configOptions: session.settings.options() };
      }),
    )
    .onRequest(methods.agent.session.prompt, ({ params: { sessionId, prompt }, signal }) =>
      answered(() => sessionOf(sessionId).prompt(prompt, signal)),
    )
    .onNotification(methods.agent.session.cancel, ({ params: { sessionId } }) => sessions.get(sessionId)?.cancel());
}

function checkFolder(cwd: string): void {
  if (!isAbsolute(cwd)) throw invalid(`cwd: ${quoted(cwd, 300)} is not a whole path.`);
  if (!isFolder(cwd)) throw invalid(`cwd: there is no folder ${quoted(cwd, 300)}.`);
}

/** Translates errors into the sentences that editors show. */
async function answered<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw asRequestError(error);
  }
}
