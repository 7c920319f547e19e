import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { type Act, usageOf } from "../src/engine/rehearsal/wire.ts";
import type { Approval } from "../src/protocol/approvals.ts";
import type { BudgetReport } from "../src/protocol/budgets.ts";
import { build, judge, startBenchDaemon, temporaryFolder } from "./support.ts";

const SESSIONS = [1, 3, 10];
/** Enough for several rounds of every session. */
const CALLS_EACH = 4;
const LATENCY_MS = 200;

/** Measures how far a day's budget is exceeded when this many sessions work in parallel, each in a loop of tool calls. */
export async function run(): Promise<void> {
  build();
  for (const sessions of SESSIONS) {
    const byCalls = await overrun(sessions, "calls", sessions * CALLS_EACH - 1);
    judge(`${sessions} at once: calls over a limit of ${byCalls.limit}`, byCalls.over, sessions - 1);
    const byTokens = await overrun(sessions, "tokens", sessions * 5_000);
    const { limit, over, largest } = byTokens;
    console.log(`       ${sessions} at once: ${over} tokens over a limit of ${limit}; the largest call took ${largest}`);
    judge(`${sessions} at once: tokens over the limit, in calls of that size`, over / largest, sessions);
  }
}

async function overrun(sessions: number, amount: "calls" | "tokens", limit: number) {
  const folder = temporaryFolder();
  let largest = 0;
  const act: Act = { call: [{ tool: "wiki_list", args: {} }], delayMs: LATENCY_MS };
  const model = await startModelServer((request) => {
    largest = Math.max(largest, usageOf(act, request).total_tokens);
    return act;
  });
  const daemon = await startBenchDaemon(model.url, join(folder.path, "daemon"), { budgets: { day: { [amount]: limit } } });
  // They never finish: the budget holds them back until the daemon stops.
  const asked = Array.from({ length: sessions }, (_, index) => daemon.ask("work", `c${index}`).catch(() => undefined));
  try {
    for (;;) {
      await sleep(LATENCY_MS * 3);
      const [before, waiting] = [model.requests.length, await waitingOn(daemon)];
      await sleep(LATENCY_MS * 5);
      if (waiting === 1 && model.requests.length === before) break;
    }
    const { body } = await daemon.get("/api/budgets");
    const used = (body as BudgetReport).items.find(({ kind }) => kind === "day")!.used;
    return { limit, over: Math.max(0, used[amount] - limit), largest };
  } finally {
    await daemon.stop();
    await Promise.all(asked);
    await model.close();
    folder.remove();
  }
}

async function waitingOn(daemon: { get(path: string): Promise<{ body: unknown }> }): Promise<number> {
  const { body } = await daemon.get("/api/approvals?state=waiting");
  return (body as { items: Approval[] }).items.length;
}
