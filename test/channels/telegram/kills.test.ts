import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Status } from "../../../src/protocol/api.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import type { TestDaemon } from "../../support/daemon.ts";
import type { Stage } from "../../support/telegram/bot-api.ts";
import { telegraphed } from "../../support/telegram/daemon.ts";
import { until } from "../../support/until.ts";

interface Point {
  name: string;
  method: string;
  stage: Stage;
  /** Counted from this point. */
  delayMs?: number;
  /** Nobody can know whether the answer had arrived. */
  isUncertain?: boolean;
}

const hasNews = (result: unknown) => !Array.isArray(result) || result.length > 0;
const POINTS: Point[] = [
  { name: "the update is told", method: "getUpdates", stage: "done" },
  { name: "the update was told", method: "getUpdates", stage: "answered" },
  ...[3, 10, 30, 80].map(
    (delayMs): Point => ({ name: `${delayMs} ms after it`, method: "getUpdates", stage: "answered", delayMs, isUncertain: true }),
  ),
  { name: "the answer is being sent", method: "sendMessage", stage: "asked", isUncertain: true },
  { name: "the answer is in the chat", method: "sendMessage", stage: "done", isUncertain: true },
  { name: "the answer was confirmed", method: "sendMessage", stage: "answered", isUncertain: true },
  ...[2, 20].map(
    (delayMs): Point => ({
      name: `${delayMs} ms after it`,
      method: "sendMessage",
      stage: "answered",
      delayMs,
      isUncertain: true,
    }),
  ),
  { name: "the answer is edited", method: "editMessageText", stage: "asked" },
  { name: "the edit is in the chat", method: "editMessageText", stage: "done" },
];
const REPEAT = "(perhaps a repeat)\n";

test("killed at any point between update and confirmation, and between reply and delivery: answered once, delivered once, or twice where nobody can know, the second marked", {
  timeout: 400_000,
}, async () => {
  const asked: string[] = [];
  const world = await telegraphed((request) => {
    const text = String(JSON.stringify(request.messages.findLast(({ role }) => role === "user")));
    asked.push(/round \d+/.exec(text)?.[0] ?? "");
    const words = /slowly/.test(text)
      ? ["One ", "after ", "the ", "other ", "for ", /round \d+/.exec(text)![0]]
      : [`Answer to ${/round \d+/.exec(text)?.[0]}`];
    return { say: words, gapMs: 450 };
  });
  const { api, owner } = world;
  let daemon: TestDaemon = world.daemon;
  for (const [round, point] of POINTS.entries()) {
    const before = owner.shown().length;
    let struck = false;
    const strike = async () => {
      if (point.delayMs) await sleep(point.delayMs);
      await daemon.kill("SIGKILL");
    };
    const killed = new Promise<void>((done) => {
      api.watch.each = async (method, stage, result) => {
        if (struck || method !== point.method || stage !== point.stage || !hasNews(result ?? [1])) return false;
        struck = true;
        await strike();
        done();
        return true;
      };
    });
    owner.send(`round ${round}${point.method === "editMessageText" ? " slowly" : ""}`);
    await killed;
    api.watch.each = () => false;
    daemon = await world.start();
    await until(
      `round ${round} to be over`,
      async () => {
        const [{ items }, status] = await Promise.all([
          daemon.json<{ items: Message[] }>("GET", "/api/messages"),
          daemon.json<Status>("GET", "/api/status"),
        ]);
        return (
          items.some(({ text, status: end }) => text.startsWith(`round ${round}`) && end === "done") && status.queue.owed === 0
        );
      },
      60_000,
    );
    const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages?limit=200");
    const own = items.filter(({ text }) => text.startsWith(`round ${round}`));
    expect([point.name, own.length]).toEqual([point.name, 1]);
    const told = owner
      .shown()
      .slice(before)
      .map(({ text }) => text);
    const text = own[0]!.reply!;
    const allowed = [[text], ...(point.isUncertain ? [[text, REPEAT + text], [REPEAT + text]] : [])];
    expect([point.name, allowed.map((each) => each.join("|"))]).toEqual([point.name, expect.arrayContaining([told.join("|")])]);
  }
  expect(owner.shown().filter(({ text }) => text.startsWith(REPEAT)).length).toBeGreaterThan(0);
});
