import type { Log } from "../../lib/log.ts";
import type { Body, Dialect, Item } from "./dialect.ts";
import { WireFailure } from "./failure.ts";
import { type Handover, isEmpty } from "./handover.ts";
import { handoverOf, type Memory, markOf, memoryOf, withMemory, withoutText } from "./memory.ts";
import { type Ask, createSummariser } from "./summarise.ts";
import { createTokenCount } from "./token-count.ts";

export interface ContextDeps {
  log: Log;
}

/** The share of a conversation's room for its latest items, once it is shortened. */
const KEEP = 0.3;

/** What a session began with, and how its system message contains it. */
export interface Inherited {
  handover: Handover;
  told: string;
  /** Whether that is complete. */
  isWhole: boolean;
}

/** Room for the answer. */
export function roomFor(window: number): number {
  return window - Math.min(16_000, Math.max(512, Math.floor(window / 5)));
}

/**
 * Keeps every request within the model's window by replacing the conversation's beginning with a summary, repeatedly if
 * needed. The runtime can do this too, but differently in each version, and without tools it loses earlier summaries.
 */
export function createContext({ log }: ContextDeps) {
  const memories = new Map<string, Memory>();
  const inherited = new Map<string, Inherited>();
  const { costOf, fits, counted } = createTokenCount();
  const summariser = createSummariser(log);

  const recall = (session: string, items: readonly Item[]): Memory | undefined => {
    const memory = memories.get(session);
    if (memory?.covers === 0) return memory;
    const last = memory && items[memory.covers - 1];
    return last && markOf(last) === memory.mark ? memory : undefined;
  };

  return {
    /** Sets what a session began with, so that the next summary includes it. */
    inherit(session: string, begun: Inherited): void {
      if (!isEmpty(begun.handover)) inherited.set(session, begun);
    },
    /** The request to send: unchanged if it fits into this many tokens. */
    async within(session: string, dialect: Dialect, asked: Body, limit: number, ask: Ask): Promise<Body> {
      const begun = inherited.get(session);
      const isTold = begun?.isWhole ?? true;
      if (!memories.has(session) && isTold && fits(asked, limit)) return asked;
      const items = dialect.items(asked);
      const memory = recall(session, items);
      // What a memory replaces need not be in the system message as well.
      const body = begun ? withoutText(dialect, asked, begun.told) : asked;
      const current = memory ? withMemory(dialect, body, items, memory) : asked;
      if (fits(current, limit) && (memory || isTold)) {
        if (memory) memory.recent = items.slice(memory.covers);
        return current;
      }
      const fixed = costOf(body.model, dialect.withItems(body, []));
      const room = limit - fixed;
      const earlier = memory ?? memoryOf(begun?.handover);
      const start = startOfTail(items, earlier.covers, (item) => costOf(body.model, item.raw), room * KEEP);
      const since = [...earlier.latest, ...items.slice(earlier.covers, start)];
      const next =
        since.length > 0
          ? {
              ...(await summariser.summarise({ session, dialect, body, earlier, since, room, ask })),
              ...{ covers: start, mark: start > 0 ? markOf(items[start - 1]!) : "", room, recent: items.slice(start) },
            }
          : memory;
      if (next) memories.set(session, next);
      const kept = next ? withMemory(dialect, body, items, next) : asked;
      if (fits(kept, limit)) return kept;
      const short = shortenResults(dialect, kept, limit, (value) => costOf(body.model, value));
      if (fits(short, limit)) return short;
      throw new WireFailure(
        `about ${costOf(body.model, short)} tokens have to be sent at once, of which ${fixed} are IO's own, and ${body.model} takes ${limit} beside its answer`,
        { status: 413, fault: "too long", code: "window_too_small" },
      );
    },
    counted,
    /** Adds the answer to the memory of a shortened conversation. */
    answered(session: string, text: string): void {
      const memory = memories.get(session);
      if (memory && text) memory.recent = [...memory.recent, { role: "assistant", text, raw: null }];
    },
    /** A shortened conversation, for a session that begins again; undefined if it is complete. */
    handover(session: string): Handover | undefined {
      const memory = memories.get(session);
      return memory && handoverOf(memory);
    },
    forget(session: string): void {
      memories.delete(session);
      inherited.delete(session);
      summariser.forget(session);
    },
  };
}
export type Context = ReturnType<typeof createContext>;

/** The first item to keep: never between a call and its result. At least the last step is kept. */
function startOfTail(items: readonly Item[], least: number, cost: (item: Item) => number, room: number): number {
  let start = items.length;
  let used = 0;
  for (let index = items.length - 1; index > least; index -= 1) {
    used += cost(items[index]!);
    if (used > room && start < items.length) break;
    if (isBoundary(items, index)) start = index;
  }
  return start === items.length ? least : start;
}

function isBoundary(items: readonly Item[], index: number): boolean {
  const { role } = items[index]!;
  return role === "user" || (role === "assistant" && items[index - 1]?.role !== "assistant");
}

/** Shortens the longest tool results until the request fits. */
function shortenResults(dialect: Dialect, body: Body, limit: number, cost: (value: unknown) => number): Body {
  let short = body;
  for (let most = 8_000; most >= 250 && cost(short) > limit; most /= 2) {
    const cut = (text: string) =>
      text.length > most ? `${text.slice(0, most / 2).toWellFormed()}\n[… cut …]\n${text.slice(-most / 2).toWellFormed()}` : text;
    short = dialect.withItems(
      short,
      dialect.items(short).map(({ raw }) => dialect.shortened(raw, cut)),
    );
  }
  return short;
}
