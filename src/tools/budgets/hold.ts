import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../../lib/log.ts";
import type { Approval } from "../../protocol/approvals.ts";
import type { Spender, Spending } from "../../protocol/usage.ts";
import { createApprovalTable } from "../../store/approvals.ts";
import type { BudgetTable } from "../../store/budgets.ts";
import type { Store } from "../../store/open.ts";
import type { Approvals, Verdict } from "../approvals/approvals.ts";
import type { Limits, Standing } from "./limits.ts";
import { questionOf, waitingOn } from "./question.ts";
import { raiseOf, tellUsed } from "./words.ts";

export interface HoldDeps {
  store: Store;
  limits: Limits;
  table: BudgetTable;
  approvals: Pick<Approvals, "ask" | "use" | "retract">;
  log: Log;
  /** How often to check whether there is room again, because the limit was changed or a new day has begun. */
  everyMs?: number;
}

/** Holds work before a model call that a budget has no room for, until a person has decided. */
export function createHold({ store, limits, table, approvals, log, everyMs = 500 }: HoldDeps) {
  const rows = createApprovalTable(store);

  const reachedBy = (spender: Spender): Standing | undefined => {
    for (const budget of limits.holdingFor(spender)) {
      const standing = limits.standing(budget);
      if (standing.over.length > 0) return standing;
    }
    return undefined;
  };

  /** Withdraws the question once a budget has room again, so that everybody who waits for it continues. */
  function look(reached: Standing, spender: Spender): void {
    try {
      const now = reachedBy(spender);
      if (now && now.kind === reached.kind && now.name === reached.name) return;
      const id = waitingOn(reached, rows);
      if (id) approvals.retract(id, "there is room again");
    } catch (error) {
      log.warn("a budget that is used up could not be looked at and is looked at again", { error });
    }
  }

  async function ask(reached: Standing, spender: Spender, signal: AbortSignal): Promise<Verdict> {
    const timer = setInterval(() => look(reached, spender), everyMs);
    try {
      return await approvals.ask(questionOf(reached, spender, signal));
    } finally {
      clearInterval(timer);
    }
  }

  /** Records the decision, once for each approval. */
  function settle(reached: Standing, { owner }: Spender, life: number, { id, note, state }: Approval): void {
    const decision = { kind: reached.kind, name: reached.name, approval: id, owner, life };
    store.transaction(() => {
      if (state === "allowed") table.raise(decision, raiseOf(limits.standing(reached), note));
      else table.stop(decision);
      approvals.use(id);
    });
  }

  return async function permit(
    spender: Spender,
    { signal, life, flush }: Parameters<Spending["permit"]>[1],
  ): Promise<string | undefined> {
    let isFlushed = false;
    while (!signal.aborted) {
      const reached = reachedBy(spender);
      if (!reached) return undefined;
      if (!isFlushed) {
        await flushed(flush);
        isFlushed = true;
        // Somebody may have decided in the meantime.
        continue;
      }
      if (table.isStopped(reached, { owner: spender.owner, life })) return `${tellUsed(reached)}, and it was not raised`;
      const { state, approval } = await ask(reached, spender, signal);
      if (state === "let go") await ended(signal);
      else if (state !== "withdrawn") settle(reached, spender, life, approval);
      if (state === "denied" || state === "expired") return whyNot(reached, approval);
    }
    return undefined;
  };
}

/** How long the runtime may take to record what came before a question. */
const FLUSH_MS = 5_000;

/**
 * Records what the model has said so far, which was paid for, since the person may take hours to decide. If this fails, the
 * question is asked all the same.
 */
async function flushed(flush: () => Promise<void> = async () => undefined): Promise<void> {
  const timer = new AbortController();
  const late = sleep(FLUSH_MS, undefined, { signal: timer.signal, ref: false });
  await Promise.race([flush(), late]).catch(() => undefined);
  timer.abort();
  await late.catch(() => undefined);
}

function whyNot(reached: Standing, { state, note }: Approval): string {
  const why = state === "expired" ? "and nobody decided in time" : `and it was not raised${note ? `: ${note}` : ""}`;
  return `${tellUsed(reached)}, ${why}`;
}

/** Waits for the work to be ended: the question stays open, but this process no longer waits for the answer. */
function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
