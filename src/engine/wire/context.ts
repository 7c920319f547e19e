import type { Log } from "../../lib/log.ts";
import type { Body, Dialect, Item } from "./dialect.ts";
import { WireFailure } from "./failure.ts";
import { handoverOf, type Memory, markOf, withMemory } from "./memory.ts";
import { type Ask, createSummariser } from "./summarise.ts";
import { createTokenCount } from "./token-count.ts";

export interface ContextDeps {
  log: Log;
}

/** What part of a conversation's room its latest items may take once it is shortened. */
const KEEP = 0.4;

/** Room for the answer itself. */
export function roomFor(window: number): number {
  return window - Math.min(16_000, Math.max(512, Math.floor(window / 5)));
}

/**
 * Keeps every request within the model's window: what a conversation began with is replaced by a summary, as often as it
 * takes. The runtime can do this too, but each version in its own way, and in plain talk it loses what it summarised before.
 */
export function createContext({ log }: ContextDeps) {
  const memories = new Map<string, Memory>();
  const { costOf, fits, counted } = createTokenCount();
  const summariser = createSummariser(log);

  const recall = (session: string, items: readonly Item[]): Memory | undefined => {
    const memory = memories.get(session);
    const last = memory && items[memory.covers - 1];
    return last && markOf(last) === memory.mark ? memory : undefined;
  };

  return {
    /** The request as it may be sent: unchanged if it fits into this many tokens. */
    async within(session: string, dialect: Dialect, body: Body, limit: number, ask: Ask): Promise<Body> {
      if (!memories.has(session) && fits(body, limit)) return body;
      const items = dialect.items(body);
      const memory = recall(session, items);
      const current = memory ? withMemory(dialect, body, items, memory) : body;
      if (fits(current, limit)) {
        if (memory) memory.recent = items.slice(memory.covers);
        return current;
      }
      const fixed = costOf(body.model, dialect.withItems(body, []));
      const room = limit - fixed;
      const covered = memory?.covers ?? 0;
      const start = startOfTail(items, covered, (item) => costOf(body.model, item.raw), room * KEEP);
      const next =
        start > covered ? await summariser.summarise({ session, dialect, body, items, memory, start, room, ask }) : memory;
      if (next) memories.set(session, next);
      const kept = next ? withMemory(dialect, body, items, next) : body;
      if (fits(kept, limit)) return kept;
      const short = shortenResults(dialect, kept, limit, (value) => costOf(body.model, value));
      if (fits(short, limit)) return short;
      throw new WireFailure(
        `about ${costOf(body.model, short)} tokens have to be sent at once, of which ${fixed} are IO's own, and ${body.model} takes ${limit} beside its answer`,
        { status: 413, fault: "too long", code: "window_too_small" },
      );
    },
    counted,
    /** Adds the answer to what is remembered of a conversation that was shortened. */
    answered(session: string, text: string): void {
      const memory = memories.get(session);
      if (memory && text) memory.recent = [...memory.recent, { role: "assistant", text, raw: null }];
    },
    /** A conversation that was shortened, in words for a session that begins anew; undefined for one that is whole. */
    handover(session: string): string | undefined {
      const memory = memories.get(session);
      return memory && handoverOf(memory);
    },
    forget(session: string): void {
      memories.delete(session);
      summariser.forget(session);
    },
  };
}
export type Context = ReturnType<typeof createContext>;

/** The first item of the part that is kept: never between a call and its result. At least the last step is kept. */
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

/** The longest results of tools are cut until the request fits. */
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
