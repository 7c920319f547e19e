import { existsSync, mkdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, relative, resolve, sep } from "node:path";
import { repositoryAbove } from "../git/repository.ts";
import type { Config } from "../home/config.ts";
import type { Paths } from "../home/paths.ts";
import { privatePlacesAndTargets } from "../home/private-places.ts";
import type { Mode } from "../home/safety-config.ts";
import { realOf } from "../lib/real-path.ts";
import { isWithin } from "../lib/within.ts";
import type { EditorTexts } from "../orchestrator/editor-texts.ts";
import type { ConversationInfo } from "../protocol/conversations.ts";
import type { Message, Source } from "../protocol/messages.ts";
import type { ToolScope } from "../tools/tool.ts";

export interface ConversationScopesDeps {
  paths: Paths;
  env: NodeJS.ProcessEnv;
  config: () => Config;
  findMessage: (id: string) => Message | undefined;
  /** The running or next message of a conversation. */
  messageNow: (conversation: string) => Message | undefined;
  /** Who first asked for a message. */
  askerOf: (message: Message) => Source;
  /** Whether tools may read a path. */
  mayRead: (place: string) => boolean;
  /** A person's settings of a conversation. */
  settingsOf: (conversation: string) => Pick<ConversationInfo, "mode" | "folder"> | undefined;
  /** Returns a reader of the conversation's editor buffers, which may be unsaved. */
  editorTextsFor: EditorTexts["readerFor"];
  editorFormsFor: EditorTexts["formsFor"];
  editorTerminalFor: EditorTexts["terminalFor"];
}

/** The mode and the folder in which a conversation's tools work. */
export function createConversationScopes(deps: ConversationScopesDeps) {
  const { paths, env, config, findMessage, messageNow, askerOf, mayRead, settingsOf } = deps;
  const userHome = env.HOME || homedir();
  const modeOf = (conversation: string): Mode => settingsOf(conversation)?.mode ?? config().mode;

  function isForbidden(place: string, border: string): boolean {
    if (relative(border, place).split(sep).includes(".git")) return true;
    const hidden = [realOf(paths.home), ...privatePlacesAndTargets(userHome).map((path) => realOf(path))];
    return hidden.some((path) => isWithin(path, place)) || !mayRead(place);
  }

  /** A folder of its own for a conversation without a project. */
  function scratchOf(conversation: string): string {
    const folder = join(paths.work, conversation);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    return folder;
  }

  return {
    modeOf,
    /** The folder that a conversation works in now and the checkout around it; none without a project. */
    projectFoldersOf(conversation: string): string[] {
      const folder = settingsOf(conversation)?.folder ?? existingFolder(senderFolderOf(messageNow(conversation)));
      if (folder === undefined || containsHome(folder, userHome)) return [];
      const project = projectAround(folder, userHome);
      return project === undefined ? [folder] : [folder, project];
    },
    /** The real path of a name in the conversation's project: nothing outside it, and no secrets. */
    placeOf(name: string, conversation: string, source: Source): string | undefined {
      const stood = existingFolder("folder" in source ? source.folder : undefined);
      const folder = settingsOf(conversation)?.folder ?? stood;
      if (folder === undefined || containsHome(folder, userHome)) return undefined;
      const border = realOf(projectAround(folder, userHome) ?? folder);
      // A name is relative to where its sender was.
      const places = [...(stood === undefined ? [] : [stood]), folder].map((base) => realOf(resolve(base, name)));
      return places.find((place) => isWithin(border, place) && existsSync(place) && !isForbidden(place, border));
    },
    /** The working scope of the tools called for a message. */
    scopeOf(messageId: string): ToolScope {
      const message = findMessage(messageId);
      const conversation = message?.conversation ?? "main";
      const mode = modeOf(conversation);
      const folder = settingsOf(conversation)?.folder ?? existingFolder(senderFolderOf(message));
      const isOfProgram = message !== undefined && PROGRAM_CHANNELS.includes(askerOf(message).channel);
      const editorText = deps.editorTextsFor(conversation);
      const askPerson = deps.editorFormsFor(conversation);
      const editorTerminal = config().acpTerminal ? deps.editorTerminalFor(conversation) : undefined;
      const base = {
        ...{ actor: "orchestrator", mode },
        ...(isOfProgram && { withheld: PERSON_ONLY_TOOLS }),
        ...(editorText && { editorText }),
        ...(askPerson && { askPerson }),
        ...(editorTerminal && { editorTerminal }),
      };
      if (mode === "full") return { ...base, cwd: folder ?? userHome };
      if (folder === undefined || containsHome(folder, userHome)) return { ...base, cwd: scratchOf(conversation) };
      const project = projectAround(folder, userHome);
      return { ...base, cwd: folder, ...(project !== undefined && { project }) };
    },
  };
}

/** The channels of other programs, also through schedules they made, and the tools reserved for people. */
const PROGRAM_CHANNELS: readonly string[] = ["mcp", "openai", "acp"] satisfies Source["channel"][];
const PERSON_ONLY_TOOLS = ["config_update", "skill_install", "skill_remove"];

/** Not a project: writing in it unasked would mean writing everywhere. */
const containsHome = (folder: string, userHome: string): boolean => isWithin(realOf(folder), realOf(userHome));

/** The checkout around a folder, unless it is the folder itself. */
function projectAround(folder: string, userHome: string): string | undefined {
  const marker = repositoryAbove(folder);
  const root = marker === undefined ? undefined : dirname(marker);
  return root === undefined || root === folder || containsHome(root, userHome) ? undefined : root;
}

/** The folder in which a message's sender was. */
const senderFolderOf = (message: Message | undefined): string | undefined =>
  message && "folder" in message.source ? message.source.folder : undefined;

/** A folder, unless it no longer exists. */
function existingFolder(folder: string | undefined): string | undefined {
  try {
    return folder && statSync(folder).isDirectory() ? folder : undefined;
  } catch {
    // It no longer exists, or is unreadable by now.
    return undefined;
  }
}
