import { homedir } from "node:os";
import type { LiveConfig } from "../home/live-config.ts";
import type { Paths } from "../home/paths.ts";
import { conflict } from "../lib/errors.ts";
import { createAnswers } from "../orchestrator/answer.ts";
import { createClientSection } from "../orchestrator/client-section.ts";
import { createConversationSettings } from "../orchestrator/conversation-settings.ts";
import { createConversations } from "../orchestrator/conversations.ts";
import { createDeleteConversation } from "../orchestrator/delete-conversation.ts";
import { createEditorTexts } from "../orchestrator/editor-texts.ts";
import { createInbox, type InboxDeps } from "../orchestrator/inbox.ts";
import { createModelForMessage } from "../orchestrator/model-for-message.ts";
import { attachingNamed } from "../orchestrator/named-files.ts";
import { createProjectSection } from "../orchestrator/project-section.ts";
import { createSteering } from "../orchestrator/steering.ts";
import type { Section } from "../orchestrator/system-message.ts";
import { createContexts } from "../store/contexts.ts";
import { createConversationLog } from "../store/conversation-log.ts";
import { createConversationRemoval } from "../store/conversation-removal.ts";
import { createConversationRows } from "../store/conversations.ts";
import type { Messages } from "../store/messages.ts";
import { createOpenAiRequests } from "../store/openai-requests.ts";
import { createSessionRows } from "../store/sessions.ts";
import type { State } from "../store/state.ts";
import { createSteerRows, type SteerRows } from "../store/steers.ts";
import { conversationHolder } from "../store/todos.ts";
import { readingTools, type Tool } from "../tools/tool.ts";
import type { Rules } from "../wiki/rules.ts";
import { createConversationScopes } from "./conversation-scopes.ts";
import type { Core } from "./core.ts";

export interface ConversationPartsDeps extends Pick<InboxDeps, "outbox" | "addressOf" | "startedBy"> {
  core: Core;
  env: NodeJS.ProcessEnv;
  paths: Paths;
  version: string;
  settings: LiveConfig;
  messages: Messages;
  state: State;
  /** Everything the orchestrator can do. */
  tools: readonly Tool[];
  /** Further tools of a conversation, by its project's folders. */
  moreTools: (folders: readonly string[], conversation: string) => readonly Tool[];
  /** The user's rules. */
  rules: Rules;
  /** The variable sections of the system message. */
  sections: Section[];
  /** Facts about a project, in a few lines. */
  factsOf: (folder: string) => Promise<string>;
}

/** Builds conversations, from their settings to the queue that answers in them. */
export function buildConversations(deps: ConversationPartsDeps) {
  const { core, env, paths, version, settings, messages, state, tools, rules, sections, factsOf } = deps;
  const { store, hub, engine, gate, budgets, log } = core;
  const { emit } = hub;
  const config = settings.current;
  const sessions = createSessionRows(store);
  const contexts = createContexts(store);
  const talk = createConversationLog(store);
  const rows = createConversationRows(store);
  const steering = createSteering({
    store,
    messages,
    rows: withRuleDetectionInSteers(createSteerRows(store), messages, rules),
    sessions,
    emit,
  });
  const conversations = createConversationSettings({ store, rows, engine, dataFolder: paths.home, emit, onOpen: factsOf });
  const workingDirectory = env.HOME || homedir();
  const { folderOf, folderTrouble } = conversations;
  const editorTexts = createEditorTexts({ announce: hub.announce });
  const { modeOf, scopeOf, projectFoldersOf, placeOf } = createConversationScopes({
    ...{ paths, env, config, findMessage: messages.find, askerOf: deps.addressOf },
    mayRead: (place) => !("refusal" in core.guard.reach(place, "read", paths.home)),
    messageNow: (conversation) => messages.next(conversation)?.message,
    settingsOf: (conversation) => rows.find(conversation),
    editorTextsFor: editorTexts.readerFor,
    editorFormsFor: editorTexts.formsFor,
    editorTerminalFor: editorTexts.terminalFor,
  });
  const tellProject = createProjectSection({ folderOf, factsOf });
  const tellClient = createClientSection({ messages, systemOf: createOpenAiRequests(store).systemOf });
  const lasting = createConversations({
    ...{ engine, version, sections, rulesFor: rules.textFor, modeOf, workingDirectory, folderOf, sessions, state, talk, log },
    todosOf: (conversation) => core.todos.of(conversationHolder(conversation)),
    placeSection: async (conversation, window) => {
      const project = await tellProject(conversation, window);
      return [project, tellClient(conversation, window)].filter(Boolean).join("\n\n");
    },
    tools: gate.bind(tools, scopeOf),
    readingTools: gate.bind(readingTools(tools), scopeOf),
    moreTools: (conversation, mode) => {
      const more = deps.moreTools(projectFoldersOf(conversation), conversation);
      return gate.bind(mode === "plan" ? readingTools(more) : more, scopeOf);
    },
  });
  const answer = createAnswers({
    ...{ store, messages, sessions, conversations: lasting, steering, contexts, config, folderTrouble, spending: budgets },
    ...{ emit, announce: hub.announce, attachments: core.attachments },
    modelFor: createModelForMessage({ engine, modelOf: conversations.modelOf, config }),
  });
  const { outbox, addressOf, startedBy } = deps;
  const queue = createInbox({
    ...{ store, talk, answer, steering, outbox, conversations, addressOf, startedBy, emit, log },
    messages: withRuleDetection(messages, rules),
  });
  const clean = core.redactor.clean;
  const inbox = attachingNamed(queue, { attachments: core.attachments, messages, placeOf, clean });
  const removal = createConversationRemoval(store);
  const deleteConversation = createDeleteConversation({
    ...{ conversations, removal, sessions, engine, inbox, emit, log },
    attachments: core.attachments,
  });
  /** Not in the middle of a turn, which needs the session to finish. */
  const renewConversation = (name: string, options: { forget: boolean }) => {
    if (conversations.get(name).running > 0)
      throw conflict("A turn runs in this conversation. Wait for its end or cancel it first.");
    return store.transaction(() => {
      lasting.beginAnew(name, options);
      contexts.forget(name);
      if (options.forget) core.todos.set(conversationHolder(name), []);
      const changed = conversations.get(name);
      emit({ type: "conversation.changed", conversation: name, data: changed });
      return changed;
    });
  };
  return { conversations, deleteConversation, renewConversation, contexts, steering, inbox, editorTexts };
}

/** Searches each new message for rules, in the transaction that stores it. */
function withRuleDetection(messages: Messages, rules: Rules): Messages {
  return {
    ...messages,
    add(row) {
      const added = messages.add(row);
      if (added.isNew) rules.learn(row);
      return added;
    },
    rewrite(id, text) {
      const isRewritten = messages.rewrite(id, text);
      const message = isRewritten ? messages.find(id) : undefined;
      if (message) rules.learn(message);
      return isRewritten;
    },
  };
}

/** The same for messages steered into a running turn. */
function withRuleDetectionInSteers(steers: SteerRows, messages: Messages, rules: Rules): SteerRows {
  return {
    ...steers,
    add(messageId, text) {
      steers.add(messageId, text);
      const message = messages.find(messageId);
      if (message) rules.learn({ ...message, text });
    },
  };
}
