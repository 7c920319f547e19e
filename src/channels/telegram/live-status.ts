import type { Api } from "grammy";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { oneLine } from "../../lib/quoted.ts";
import type { Status } from "../../protocol/api.ts";
import type { WaitsFor } from "../../protocol/approvals.ts";
import type { Message } from "../../protocol/messages.ts";
import type { RunSummary } from "../../protocol/runs.ts";
import { showState } from "../../protocol/shown-state.ts";
import type { Task } from "../../protocol/squads.ts";
import type { State } from "../../store/state.ts";
import type { TelegramSends } from "../../store/telegram-sends.ts";
import { calling } from "./bot.ts";
import { type Chat, placeOf } from "./chat.ts";
import { pieceOf } from "./format/answer.ts";
import type { Run } from "./format/runs.ts";
import type { Teller } from "./teller.ts";

export interface LiveStatusDeps {
  api: Api;
  teller: Teller;
  sends: Pick<TelegramSends, "of" | "drop">;
  state: State;
  status: () => Status;
  open: () => Message[];
  runningTasks: () => Task[];
  runningRuns: () => Pick<RunSummary, "id" | "waitsFor">[];
  conversationOf: (place: Chat) => string;
  servesChat: (chatId: number) => boolean;
  log: Log;
  everyMs?: number;
}

const PINNED = "telegram:pinned";
const KEY = "pinned-status";
const EVERY_MS = 5_000;

/** What IO is doing, in a few lines; a pinned status is kept up to date. */
export function createLiveStatus(deps: LiveStatusDeps) {
  const { api, teller, sends, state, status, open, runningTasks, runningRuns, conversationOf, servesChat, log } = deps;
  const { everyMs = EVERY_MS } = deps;
  let timer: NodeJS.Timeout | undefined;

  function lines(place?: Chat): Run[] {
    const { engine, queue, counts, disk, version } = status();
    const running = open().filter((each) => each.status === "running");
    const work = [
      ...running.map((each) => `${signOf(each)} ${each.conversation}: ${oneLine(each.text, 60)}`),
      ...runningTasks().map((task) => `${signOf(task)} ${task.id}, ${task.agent}: ${oneLine(task.description, 60)}`),
      ...runningRuns().map((run) => `${signOf(run)} run ${run.id}`),
    ];
    const waiting = counts.approvalsWaiting ?? 0;
    return [
      { text: `IO ${version}`, bold: true },
      { text: `\nModel: ${engine.model} (${engine.kind}, ${engine.state})` },
      ...(disk?.detail ? [{ text: `\n${disk.detail}` }] : []),
      { text: `\nQueue: ${queue.running} running, ${queue.waiting} queued` },
      ...(queue.owed > 0 ? [{ text: `, ${queue.owed} not delivered yet` }] : []),
      { text: work.length > 0 ? `\nRuns now:\n${work.slice(0, 10).join("\n")}` : "\nNothing runs." },
      ...(waiting > 0 ? [{ text: `\nWaiting for you: ${waiting} (/approvals)` }] : []),
      ...(place ? [{ text: `\nConversation here: ${conversationOf(place)}` }] : []),
    ];
  }

  async function pin(place: Chat): Promise<void> {
    for (const { part } of sends.of(KEY)) sends.drop(KEY, part);
    state.set(PINNED, JSON.stringify([place.chatId, place.threadId ?? null]));
    await renew();
    const [sent] = sends.of(KEY);
    const messageId = sent?.messageId;
    if (typeof messageId === "number")
      await calling("pinChatMessage", () => api.pinChatMessage(place.chatId, messageId, { disable_notification: true }));
  }

  async function renew(): Promise<void> {
    const [chatId, threadId] = JSON.parse(state.get(PINNED) ?? "[]") as [number?, (number | null)?];
    if (chatId === undefined) return;
    if (!servesChat(chatId)) return state.delete(PINNED);
    await teller.show(KEY, placeOf(chatId, threadId ?? undefined), { pieces: [pieceOf(lines())], silent: true, once: true });
  }

  return {
    async command(place: Chat, rest: string): Promise<{ runs: Run[] }> {
      if (rest === "pin") {
        await pin(place);
        return { runs: [{ text: "Pinned. /status unpin ends it." }] };
      }
      if (rest === "unpin") {
        state.delete(PINNED);
        return { runs: [{ text: "It is not kept up any more." }] };
      }
      return { runs: lines(place) };
    },
    start(): void {
      const again = () =>
        renew().catch((error: unknown) => log.debug("the pinned status stays as it is", { error: messageOf(error) }));
      timer = setInterval(() => void again(), everyMs).unref();
    },
    stop: () => clearInterval(timer),
  };
}
/** A bullet, or what running work waits for. */
function signOf({ waitsFor }: { waitsFor?: WaitsFor | undefined }): string {
  if (!waitsFor) return "•";
  const { mark, words } = showState({ kind: "message", status: "running", waitsFor });
  return `${mark} ${words}:`;
}
export type LiveStatus = ReturnType<typeof createLiveStatus>;
