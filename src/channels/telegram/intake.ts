import { setTimeout as sleep } from "node:timers/promises";
import type { Message, Update } from "grammy/types";
import { createBreath } from "../../lib/breath.ts";
import { messageOf } from "../../lib/errors.ts";
import { createLanes } from "../../lib/lanes.ts";
import type { Log } from "../../lib/log.ts";
import type { Inbox } from "../../orchestrator/inbox.ts";
import { isTemporary } from "../../store/faults.ts";
import type { Messages } from "../../store/messages.ts";
import type { StoredUpdate, TelegramUpdates } from "../../store/telegram-updates.ts";
import type { Access } from "./access.ts";
import type { Chat } from "./chat.ts";
import type { Commands } from "./commands.ts";
import type { Compose } from "./compose.ts";
import { plainPieces } from "./format/answer.ts";
import { commandOf, type IncomingUpdate, keptOf } from "./incoming-update.ts";
import type { Interjections } from "./interjections.ts";
import type { Presses } from "./presses.ts";
import type { Strangers } from "./strangers.ts";
import type { Teller } from "./teller.ts";
import type { Topics } from "./topics.ts";
import { troubleOf } from "./trouble.ts";
import { mayHeal } from "./trouble-words.ts";

export interface IntakeDeps {
  botId: () => number;
  updates: TelegramUpdates;
  access: Pick<Access, "serves" | "heardIn">;
  strangers: Strangers;
  commands: Commands;
  presses: Presses;
  compose: Compose;
  interjections: Interjections;
  topics: Topics;
  teller: Pick<Teller, "show">;
  inbox: Pick<Inbox, "submit" | "rewrite">;
  messages: Pick<Messages, "findByKey">;
  /** Called when the user has written. */
  onHeard: () => void;
  log: Log;
  /** The most time between two messages of an album. */
  albumMs?: number;
}

const ALBUM_MS = 800;
const RETRY_MS = 2_000;
/** How often an update is tried that fails for a reason other than Telegram. */
const MAX_TRIES = 3;
/** How late the original message may arrive after its edit. */
const LATE_SECONDS = 900;

const NOTHING_TO_READ = "I can read text, photos, documents, voice, audio and video. There was none of them in this message.";
const NOT_HANDLED = "This could not be handled. The log says why: io logs. Send it again if you still want it.";
const TOO_LATE = "This message is being answered or was answered, so its change was not taken. Send it as a message of its own.";

/** Handles each update once, in order per chat; commands and buttons at once. */
export function createIntake(deps: IntakeDeps) {
  const { botId, updates, access, strangers, commands, presses, compose, interjections, topics } = deps;
  const { teller, inbox, messages, onHeard, log } = deps;
  const { albumMs = ALBUM_MS } = deps;
  const tries = new Map<number, number>();
  const lanes = createLanes({
    async work(lane) {
      const due = () => dueOf(updates.waiting(lane), albumMs);
      const breathe = createBreath();
      for (let next = due(); lanes.isOpen() && next; next = due()) {
        if (next.waitMs > 0) await sleep(next.waitMs);
        else await handleAll(next.all);
        await breathe();
      }
    },
    onFailure: (lane, error) => log.warn("what Telegram told is handled later", { lane, error: messageOf(error) }),
    retryMs: RETRY_MS,
  });

  async function handleAll(all: StoredUpdate[]): Promise<void> {
    const { id } = all[0]!;
    try {
      await handle(all);
    } catch (error) {
      const trouble = troubleOf(error);
      if ((trouble && mayHeal(trouble)) || isTemporary(error) || !lanes.isOpen()) throw error;
      tries.set(id, (tries.get(id) ?? 0) + 1);
      log.error("what Telegram told could not be handled", { error });
      if (tries.get(id)! < MAX_TRIES) throw error;
      await giveUp(all[0]!);
    }
    tries.delete(id);
    updates.done(all);
  }

  async function giveUp({ id, body }: StoredUpdate): Promise<void> {
    const message = messageIn(JSON.parse(body) as IncomingUpdate);
    if (message) await hint([NOT_HANDLED], topics.placeOf(message), `update:${botId()}:${id}:lost`);
  }

  async function handle(all: StoredUpdate[]): Promise<void> {
    const told = all.map(({ body }) => JSON.parse(body) as IncomingUpdate);
    const first = told[0]!;
    const key = `update:${botId()}:${all[0]!.id}`;
    if ("stranger" in first) return strangers.answer(first.stranger, key);
    const from = first.message?.from ?? first.edited_message?.from ?? first.callback_query?.from;
    // The pairing may have ended since.
    if (!from || !access.serves(from.id)) return;
    const chat = messageIn(first)?.chat;
    if (chat) access.heardIn(chat.id, from.id);
    onHeard();
    if (first.callback_query) return presses.press(first.callback_query, key);
    if (first.edited_message) return edited(first.edited_message, key);
    const said = (told as Update[]).map(({ message }) => message).filter((message) => message !== undefined);
    const command = said[0] && commandOf(said[0]);
    if (command) return commands.run(command, topics.placeOf(said[0]!), key);
    return submit(said, key, all[0]);
  }

  async function submit(said: readonly Message[], key: string, update?: StoredUpdate): Promise<void> {
    const [first] = said;
    if (!first || first.forum_topic_created || first.pinned_message || first.forum_topic_edited) return;
    const place = topics.placeOf(first);
    const conversation = topics.conversationOf(place);
    if (update && (await interjections.take({ message: first, keyOf, conversation, update }))) return;
    const { text, hints, attachments } = await compose(said, conversation);
    if (text === "") return hint([NOTHING_TO_READ], place, key);
    inbox.submit({ text, conversation, source: place, idempotencyKey: keyOf(first), attachments });
    await hint(hints, place, key);
  }

  async function edited(message: Message, key: string): Promise<void> {
    const place = topics.placeOf(message);
    if (commandOf(message)) return hint(["A command that is changed is not run again. Send it anew."], place, key);
    const known = messages.findByKey(keyOf(message));
    const isFresh = Date.now() / 1000 - message.date < LATE_SECONDS;
    // The original is still on its way and has the same idempotency key.
    if (!known && isFresh && message.media_group_id === undefined) return submit([message], key);
    if (!known || message.media_group_id !== undefined) return hint([TOO_LATE], place, key);
    const { text, hints } = await compose([message], known.conversation);
    if (text === "" || text === known.text) return;
    await hint(inbox.rewrite(known.id, text) ? hints : [TOO_LATE], place, key);
  }

  const keyOf = ({ chat, message_id }: Pick<Message, "chat" | "message_id">) => `telegram:${botId()}:${chat.id}:${message_id}`;

  async function hint(lines: readonly string[], place: Chat, key: string): Promise<void> {
    if (lines.length > 0) await teller.show(key, place, { pieces: plainPieces(lines.join("\n")), silent: true });
  }

  return {
    /** On disk when this returns. */
    keep(all: readonly Update[]): void {
      const kept = [...all]
        .sort((a, b) => a.update_id - b.update_id)
        .flatMap((update) => {
          const found = keptOf(update, access.serves);
          return found ? [{ bot: botId(), id: update.update_id, lane: found.lane, body: JSON.stringify(found.told) }] : [];
        });
      if (kept.length > 0) updates.add(kept);
    },
    kick(): void {
      for (const lane of updates.lanes()) lanes.kick(lane);
    },
    open: () => lanes.open(),
    close: () => lanes.close(),
  };
}
export type Intake = ReturnType<typeof createIntake>;

/** The message of an update, or the one with the pressed button. */
function messageIn(told: IncomingUpdate) {
  return "stranger" in told ? undefined : (told.message ?? told.edited_message ?? told.callback_query?.message);
}

/** The oldest update of a lane, with the rest of its album; waits while more of the album may arrive. */
function dueOf(waiting: readonly StoredUpdate[], albumMs: number): { all: StoredUpdate[]; waitMs: number } | undefined {
  const first = waiting[0];
  if (!first) return undefined;
  const album = albumOf(first);
  if (album === undefined) return { all: [first], waitMs: 0 };
  const all = waiting.filter((each) => albumOf(each) === album);
  const newest = Math.max(...all.map(({ createdAt }) => Date.parse(createdAt)));
  return { all, waitMs: Math.max(0, newest + albumMs - Date.now()) };
}

function albumOf({ body }: StoredUpdate): string | undefined {
  return body.includes("media_group_id") ? (JSON.parse(body) as Update).message?.media_group_id : undefined;
}
