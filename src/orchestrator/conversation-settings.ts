import { basename } from "node:path";
import type { Engine } from "../engine/port.ts";
import { refuseDataFolder } from "../home/data-folder.ts";
import { missing, UserError } from "../lib/errors.ts";
import { isFolder } from "../lib/is-folder.ts";
import { named, namedList, quoted } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";
import { projectAround } from "../project/around.ts";
import type { ConversationChange, ConversationInfo, OpenConversation } from "../protocol/conversations.ts";
import type { Emit } from "../protocol/events.ts";
import { folderAt, freeSlug, slugOf } from "../squads/input.ts";
import type { ConversationQuery, ConversationRows } from "../store/conversations.ts";
import { isTemporary } from "../store/faults.ts";
import type { Store } from "../store/open.ts";

export const MAIN = "main";
const LISTED_MODELS = 12;

export interface ConversationSettingsDeps {
  store: Store;
  rows: ConversationRows;
  engine: Pick<Engine, "serving" | "models">;
  dataFolder: string;
  /** Called when somebody opens a project, so that its analysis is ready for the first message. */
  onOpen: (folder: string) => Promise<unknown>;
  emit: Emit;
}

/** The conversations and their settings: folder, title, mode and model. */
export function createConversationSettings({ store, rows, engine, dataFolder, onOpen, emit }: ConversationSettingsDeps) {
  const find = (name: string): ConversationInfo | undefined => rows.find(name) ?? (name === MAIN ? unused(MAIN) : undefined);

  /** The number of clients that follow each conversation. */
  const followers = new Map<string, number>();

  function set(name: string, changes: ConversationChange): ConversationInfo {
    return store.transaction(() => {
      const changed = rows.change(name, changes);
      emit({ type: "conversation.changed", data: changed });
      return changed;
    });
  }

  /** Marks all answers of a conversation as seen; with `tells`, publishes that. */
  function seen(name: string, { tells = true } = {}): void {
    // Reads first, so that opening a conversation without news does not wait for a writer.
    if (!rows.find(name)?.unread) return;
    try {
      store.soft(() => {
        if (rows.seen(name) && tells) emit({ type: "conversation.changed", data: rows.find(name)! });
      });
    } catch (error) {
      // If it cannot be written now, the answers stay unread a little longer.
      if (!isTemporary(error)) throw error;
    }
  }

  async function checkedModel(model: string): Promise<string> {
    const serving = await engine.serving(model);
    if (!serving.standsIn) return serving.model;
    const all = (await engine.models()).map(({ id }) => id);
    throw new UserError(`model: no model is called ${quoted(model, 100)}. Available: ${namedList(all, LISTED_MODELS)}.`);
  }

  /** The project around a folder, unless it contains the data folder or lies in it. */
  async function projectAt(folder: string): Promise<string | undefined> {
    const project = await projectAround(folder);
    try {
      if (project !== undefined) refuseDataFolder(dataFolder, project);
      return project;
    } catch {
      // The data folder, or a folder that contains it, is not a project.
      return undefined;
    }
  }

  /** Finds or creates the conversation synchronously, so that concurrent calls for a project get the same one. */
  function ofProject(project: string): { conversation: ConversationInfo; isNew: boolean } {
    const conversation = rows.ofFolder(project);
    if (conversation) return { conversation, isNew: false };
    const wanted = slugOf(basename(project)).slice(0, 50) || "project";
    const name = freeSlug(wanted, (each) => each === MAIN || rows.find(each) !== undefined);
    return { conversation: set(name, { folder: project }), isNew: true };
  }

  return {
    /** Throws if it does not exist. */
    get(name: string): ConversationInfo {
      const found = find(name);
      if (found) return found;
      throw missing(`There is no conversation called ${named(name)}. "io conversation list" names all conversations.`);
    },
    list: (query: ConversationQuery): ConversationInfo[] => rows.list(query),

    /** Changes the given settings, and creates the conversation if necessary. */
    async change(name: string, { folder, title, model, ...rest }: ConversationChange): Promise<ConversationInfo> {
      return set(name, {
        ...rest,
        ...(title !== undefined && { title: title && checkedTitle(title) }),
        ...(folder !== undefined && { folder: folder === null ? null : folderAt(folder, undefined, dataFolder) }),
        ...(model !== undefined && { model: model === null ? null : await checkedModel(model) }),
      });
    },

    /**
     * The conversation for a person in a folder: the one they name, the one last used there, or that of the project around the
     * folder, which is created if necessary. Outside of projects it is `main`.
     */
    async open({ folder, name, last }: OpenConversation): Promise<{ conversation: ConversationInfo; isNew: boolean }> {
      const project = folder === undefined ? undefined : await projectAt(folder);
      if (project !== undefined) void onOpen(project);
      if (name !== undefined) {
        const known = find(name);
        if (known || project === undefined) return { conversation: known ?? unused(name), isNew: false };
        return { conversation: set(name, { folder: project }), isNew: true };
      }
      const latest = last ? rows.lastUsed(project) : undefined;
      if (latest) return { conversation: latest, isNew: false };
      return project === undefined ? { conversation: find(MAIN)!, isNew: false } : ofProject(project);
    },

    seen,
    /** A client has the conversation open until it calls the returned function: it has seen all answers and sees new ones. */
    follow(name: string): () => void {
      // The client follows events from here on, and needs none about itself.
      seen(name, { tells: false });
      followers.set(name, (followers.get(name) ?? 0) + 1);
      return () => {
        const left = (followers.get(name) ?? 1) - 1;
        if (left > 0) followers.set(name, left);
        else followers.delete(name);
      };
    },
    /** Marks a new answer as unread, unless a client has the conversation open. */
    answered(name: string): void {
      if (!followers.has(name)) rows.answered(name);
    },

    /** The folder of a conversation; null if it has none. */
    folderOf: (name: string): string | null => rows.find(name)?.folder ?? null,
    /** Why a conversation cannot work in its folder now; undefined if it can, or has none. */
    folderTrouble(name: string): string | undefined {
      const folder = rows.find(name)?.folder ?? null;
      if (folder === null || (isFolder(folder) && realOf(folder) === folder)) return undefined;
      return `the folder of this conversation, ${named(folder, 300)}, is not there any more. Bring it back, or name another: io conversation set ${name} --folder <path>.`;
    },
    modelOf: (name: string): string | null => rows.find(name)?.model ?? null,
  };
}
export type ConversationSettings = ReturnType<typeof createConversationSettings>;

/** A title is one line in every list. */
function checkedTitle(title: string): string {
  const line = title.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ").trim();
  if (line === "") throw new UserError("title: must not be empty");
  return line;
}

/** A conversation without messages or settings. */
function unused(name: string): ConversationInfo {
  const nothing = { title: null, folder: null, mode: null, model: null, lastMessageAt: null };
  return { name, ...nothing, unread: 0, running: 0, waiting: 0, messages: 0 };
}
