import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { oneLine } from "../../lib/quoted.ts";
import { replyKey } from "../../orchestrator/outbox.ts";
import type { Event } from "../../protocol/events.ts";
import type { Source } from "../../protocol/messages.ts";
import { type CallState, callEnding, formatRetry, showState, stateAtTheEnd } from "../../protocol/shown-state.ts";
import { type Chat, isChat } from "./chat.ts";
import type { Shaped } from "./format/answer.ts";
import { plainPieces } from "./format/answer.ts";
import type { Teller } from "./teller.ts";

export interface LiveDeps {
  teller: Teller;
  shape: (markdown: string) => Shaped;
  /** Who gets the answer to a message. */
  addressOf: (messageId: string) => Source;
  servesChat: (chatId: number) => boolean;
  log: Log;
  /** Minimum time between two edits in one chat. */
  paceMs?: number;
  /** How long an answer may take before its beginning is shown. */
  patienceMs?: number;
}

/** A running turn. */
interface Turn {
  place: Chat;
  text: string;
  tools: Map<string, { calls: number; state: CallState; exitCode?: number | null | undefined }>;
  /** The last failed try, until something else happens. */
  retry?: string | undefined;
  /** Whether something is not shown yet. */
  answerChanged: boolean;
  toolsChanged: boolean;
  timer: NodeJS.Timeout | undefined;
  /** Whether live updates stopped because a send has an unknown outcome or failed; the final answer will show everything. */
  given: boolean;
}

/** Shows answers while they are written, and the running tools in one silent line. */
export interface Live {
  hear(event: Event): void;
  /** Stops the live updates of a turn. */
  end(messageId: string): void;
  close(): void;
}

const PACE_MS = 1_100;
const PATIENCE_MS = 600;

export const toolsKey = (messageId: string) => `tools:${messageId}`;

export function createLive(deps: LiveDeps): Live {
  const { teller, shape, addressOf, servesChat, log, paceMs = PACE_MS, patienceMs = PATIENCE_MS } = deps;
  const turns = new Map<string, Turn>();
  /** The earliest time of the next edit in each chat. */
  const nextIn = new Map<number, number>();

  function turnOf(id: string): Turn | undefined {
    const known = turns.get(id);
    if (known) return known;
    const place = addressOf(id);
    if (!isChat(place) || !servesChat(place.chatId)) return undefined;
    const made: Turn = {
      ...{ place, text: "", tools: new Map(), answerChanged: false, toolsChanged: false, timer: undefined, given: false },
    };
    turns.set(id, made);
    return made;
  }

  function plan(id: string, turn: Turn, patience: number): void {
    if (turn.given) return;
    const at = Math.max(performance.now() + patience, nextIn.get(turn.place.chatId) ?? 0);
    turn.timer ??= setTimeout(() => void tick(id, turn), at - performance.now()).unref();
  }

  async function tick(id: string, turn: Turn): Promise<void> {
    const { place } = turn;
    if (!servesChat(place.chatId)) return;
    const wait = (nextIn.get(place.chatId) ?? 0) - performance.now();
    if (wait > 0) {
      turn.timer = setTimeout(() => void tick(id, turn), wait).unref();
      return;
    }
    nextIn.set(place.chatId, performance.now() + paceMs);
    try {
      if (turn.toolsChanged) {
        turn.toolsChanged = false;
        await showTools(id, turn);
      } else if (turn.answerChanged) {
        turn.answerChanged = false;
        const { pieces } = shape(turn.text);
        // If Telegram refuses now, the final answer reports it, once.
        if (pieces.length > 0) turn.given = (await teller.show(replyKey(id), place, { pieces })) === "undeliverable";
      }
    } catch (error) {
      turn.given = true;
      log.debug("an answer is not shown as it comes", { error: messageOf(error) });
    }
    turn.timer = undefined;
    if (turns.get(id) === turn && (turn.answerChanged || turn.toolsChanged)) plan(id, turn, 0);
  }

  const showTools = (id: string, { place, tools, retry }: Turn, ended = false) =>
    teller.show(toolsKey(id), place, {
      pieces: plainPieces(toolsLine(tools, ended ? undefined : retry, ended)),
      silent: true,
      once: true,
    });

  function end(id: string): void {
    const turn = turns.get(id);
    if (!turn) return;
    turns.delete(id);
    clearTimeout(turn.timer);
    if (teller.placeOf(toolsKey(id)))
      void showTools(id, turn, true).catch((error: unknown) =>
        log.debug("the line of tools stays as it is", { error: messageOf(error) }),
      );
  }

  return {
    hear(event) {
      if (event.type === "message.finished") return end(event.data.id);
      if (event.type !== "message.delta" && event.type !== "message.tool" && event.type !== "message.retried") return;
      const { id } = event.data;
      const turn = turnOf(id);
      if (!turn) return;
      if (event.type === "message.retried") {
        turn.retry = formatRetry(event.data);
        turn.toolsChanged = true;
        plan(id, turn, patienceMs / 2);
        return;
      }
      turn.toolsChanged ||= turn.retry !== undefined;
      turn.retry = undefined;
      if (event.type === "message.delta") {
        turn.text = event.data.restarted ? event.data.text : turn.text + event.data.text;
        turn.answerChanged = turn.text.trim() !== "";
        if (turn.answerChanged) plan(id, turn, patienceMs);
        return;
      }
      const { tool, state, exitCode } = event.data;
      if (state === "running") return;
      const before = turn.tools.get(tool);
      turn.tools.set(tool, { calls: (before?.calls ?? 0) + (state === "started" ? 1 : 0), state, exitCode });
      turn.toolsChanged = true;
      plan(id, turn, patienceMs / 2);
    },
    end,
    close() {
      for (const { timer } of turns.values()) clearTimeout(timer);
      turns.clear();
    },
  };
}

function toolsLine(tools: Turn["tools"], retry: string | undefined, ended: boolean): string {
  const all = [...tools].map(([tool, { calls, state, exitCode }]) => {
    const known = ended ? stateAtTheEnd(state) : state;
    const { mark, tone } = showState({ kind: "call", state: known, exitCode });
    const sign = tone === "good" || tone === "busy" ? mark : `${mark} ${callEnding(known, exitCode)}`;
    return `${tool}${calls > 1 ? ` ×${calls}` : ""} ${sign}`.trimEnd();
  });
  return `⚙ ${[...all.slice(-12), ...(retry ? [`! ${oneLine(retry, 300)}`] : [])].join(" · ") || "going on"}`;
}
