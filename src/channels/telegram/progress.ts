import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { oneLine } from "../../lib/quoted.ts";
import type { WaitsFor } from "../../protocol/approvals.ts";
import type { Event } from "../../protocol/events.ts";
import type { Source } from "../../protocol/messages.ts";
import { type Stateful, showState } from "../../protocol/shown-state.ts";
import { type Chat, isChat } from "./chat.ts";
import { plainPieces } from "./format/answer.ts";
import type { Teller } from "./teller.ts";

export interface ProgressDeps {
  teller: Pick<Teller, "show" | "placeOf">;
  /** Who asked for a task or a run. */
  askerOf: (ownerId: string) => Source | undefined;
  /** Whether silent news of a task or a run is sent now. */
  goesOut: (ownerId: string) => boolean;
  servesChat: (chatId: number) => boolean;
  log: Log;
  /** Minimum time between two edits of one message. */
  paceMs?: number;
}

interface Shown {
  place: Chat;
  line: string;
  timer: NodeJS.Timeout | undefined;
  changedAt: number;
}

const PACE_MS = 3_000;
const MAX_LINE = 200;
const MOST_ENDED = 200;

/** The symbol and words that every channel uses for a state. */
const inWords = (of: Stateful): string => {
  const { mark, words } = showState(of);
  return `${mark} ${words}`;
};

/** The progress of tasks and runs: one silent message each, edited as they continue. */
export function createProgress({ teller, askerOf, goesOut, servesChat, log, paceMs = PACE_MS }: ProgressDeps) {
  const open = new Map<string, Shown>();
  /** The latest ended tasks and runs, whose late progress is not shown. */
  const ended = new Set<string>();

  const show = (id: string, { place, line }: Pick<Shown, "place" | "line">) =>
    void teller
      .show(`progress:${id}`, place, { pieces: plainPieces(line), silent: true, once: true })
      .catch((error: unknown) => log.debug("progress is not shown in Telegram", { error: messageOf(error) }));

  function placeFor(id: string): Chat | undefined {
    const to = askerOf(id);
    return to && isChat(to) && servesChat(to.chatId) && goesOut(id) ? to : undefined;
  }

  function change(id: string, line: string): void {
    if (ended.has(id)) return;
    const known = open.get(id);
    const place = known?.place ?? placeFor(id);
    if (!place) return;
    const shown = known ?? { place, line, timer: undefined, changedAt: Number.NEGATIVE_INFINITY };
    shown.line = oneLine(line, MAX_LINE);
    open.set(id, shown);
    shown.timer ??= setTimeout(
      () => {
        shown.timer = undefined;
        shown.changedAt = performance.now();
        if (goesOut(id)) show(id, shown);
      },
      Math.max(0, shown.changedAt + paceMs - performance.now()),
    ).unref();
  }

  function end(id: string, line: string): void {
    const shown = open.get(id);
    clearTimeout(shown?.timer);
    open.delete(id);
    ended.add(id);
    for (const old of ended) if (ended.size > MOST_ENDED) ended.delete(old);
    // The first message may still be on its way.
    const place = teller.placeOf(`progress:${id}`) ?? (shown && Number.isFinite(shown.changedAt) ? shown.place : undefined);
    if (place && servesChat(place.chatId)) show(id, { place, line: oneLine(line, MAX_LINE) });
  }

  return {
    hear({ type, data }: Event): void {
      if (type === "task.started") change(data.id, `⚙ ${data.agent} (${data.squad}) has begun ${data.id}`);
      else if (type === "task.progress") change(data.id, `⚙ ${data.agent} (${data.squad}): ${data.summary}`);
      else if (type === "task.finished")
        end(data.id, `⚙ ${data.agent} (${data.squad}): ${data.id} ${inWords({ kind: "task", task: data })}`);
      else if (type === "approval.asked") {
        const { kind, owner, id } = data;
        const waitsFor: WaitsFor = { kind: kind === "budget" ? "budget" : "approval", approvals: [id] };
        if (open.has(owner.id)) change(owner.id, `⚙ ${owner.id} ${inWords({ kind: "message", status: "running", waitsFor })}`);
      } else if (type === "phase.started") change(data.runId, `⚙ run ${data.runId}: ${data.name}`);
      else if (type === "step.started") change(data.runId, `⚙ run ${data.runId}: ${data.key}`);
      else if (type === "run.finished") end(data.runId, `⚙ run ${data.runId} ${inWords({ kind: "run", ...data })}`);
    },
    close(): void {
      for (const { timer } of open.values()) clearTimeout(timer);
      open.clear();
    },
  };
}
