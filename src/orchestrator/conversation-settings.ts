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
  /** Told of a project that somebody opens, so that what is known of it is ready with the first message. */
  onOpen: (folder: string) => Promise<unknown>;
  emit: Emit;
}

/** The conversations as people see and set them: folder, title, mode and model of each. */
export function createConversationSettings({ store, rows, engine, dataFolder, onOpen, emit }: ConversationSettingsDeps) {
  const find = (name: string): ConversationInfo | undefined => rows.find(name) ?? (name === MAIN ? unused(MAIN) : undefined);

  /** How many follow each conversation now. */
  const followers = new Map<string, number>();

  function set(name: string, changes: ConversationChange): ConversationInfo {
    return store.transaction(() => {
      const changed = rows.change(name, changes);
      emit({ type: "conversation.changed", data: changed });
      return changed;
    });
  }

  /** Somebody has seen all answers of a conversation; `tells` has everybody else told. */
  function seen(name: string, { tells = true } = {}): void {
    // Read first: whoever looks at a conversation that has nothing new must not have to wait for a writer.
    if (!rows.find(name)?.unread) return;
    try {
      store.soft(() => {
        if (rows.seen(name) && tells) emit({ type: "conversation.changed", data: rows.find(name)! });
      });
    } catch (error) {
      // What cannot be written now counts as unread a little longer.
      if (!isTemporary(error)) throw error;
    }
  }

  async function checkedModel(model: string): Promise<string> {
    const serving = await engine.serving(model);
    if (!serving.standsIn) return serving.model;
    const all = (await engine.models()).map(({ id }) => id);
    throw new UserError(`model: no model is called ${quoted(model, 100)}. Available: ${namedList(all, LISTED_MODELS)}.`);
  }

  /** The project somebody stands in, unless it has to do with the data folder. */
  async function projectAt(folder: string): Promise<string | undefined> {
    const project = await projectAround(folder);
    try {
      if (project !== undefined) refuseDataFolder(dataFolder, project);
      return project;
    } catch {
      // The data folder, or a folder that holds it, is nobody's project.
      return undefined;
    }
  }

  /** Looked for and made without a pause, so that two who open the same project find the same conversation. */
  function ofProject(project: string): { conversation: ConversationInfo; isNew: boolean } {
    const conversation = rows.ofFolder(project);
    if (conversation) return { conversation, isNew: false };
    const wanted = slugOf(basename(project)).slice(0, 50) || "project";
    const name = freeSlug(wanted, (each) => each === MAIN || rows.find(each) !== undefined);
    return { conversation: set(name, { folder: project }), isNew: true };
  }

  return {
    /** Throws where there is none. */
    get(name: string): ConversationInfo {
      const found = find(name);
      if (found) return found;
      throw missing(`There is no conversation called ${named(name)}. "io conversation list" names all conversations.`);
    },
    list: (query: ConversationQuery): ConversationInfo[] => rows.list(query),

    /** Changes what is given, and makes the conversation if there is none. */
    async change(name: string, { folder, title, model, ...rest }: ConversationChange): Promise<ConversationInfo> {
      return set(name, {
        ...rest,
        ...(title !== undefined && { title: title && checkedTitle(title) }),
        ...(folder !== undefined && { folder: folder === null ? null : folderAt(folder, undefined, dataFolder) }),
        ...(model !== undefined && { model: model === null ? null : await checkedModel(model) }),
      });
    },

    /**
     * The conversation for somebody who stands in a folder: the one they name, the one that was used last there, or that of the
     * project around the folder, which is made if it has none. Outside of projects it is `main`.
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
    /** Somebody has the conversation open until the answer is called: they have seen what was said, and see what comes. */
    follow(name: string): () => void {
      // They follow the events from here on, and asked for none about themselves.
      seen(name, { tells: false });
      followers.set(name, (followers.get(name) ?? 0) + 1);
      return () => {
        const left = (followers.get(name) ?? 1) - 1;
        if (left > 0) followers.set(name, left);
        else followers.delete(name);
      };
    },
    /** An answer was given in a conversation, which somebody sees at once or it is unread. */
    answered(name: string): void {
      if (!followers.has(name)) rows.answered(name);
    },

    /** The folder that a conversation works in; null where it has none. */
    folderOf: (name: string): string | null => rows.find(name)?.folder ?? null,
    /** Why a conversation cannot work in its folder now; undefined where it can, or has none. */
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

/** A conversation in which nothing was said or set yet. */
function unused(name: string): ConversationInfo {
  const nothing = { title: null, folder: null, mode: null, model: null, lastMessageAt: null };
  return { name, ...nothing, unread: 0, running: 0, waiting: 0, messages: 0 };
}
