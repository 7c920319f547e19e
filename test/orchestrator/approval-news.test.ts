import { expect, onTestFinished, test } from "vitest";
import { createNews } from "../../src/news/news.ts";
import { type ApprovalNewsDeps, createApprovalNews } from "../../src/orchestrator/approval-news.ts";
import { createOutbox } from "../../src/orchestrator/outbox.ts";
import type { Approval } from "../../src/protocol/approvals.ts";
import type { Event } from "../../src/protocol/events.ts";
import { openStore } from "../../src/store/open.ts";
import { createOutboxRows } from "../../src/store/outbox.ts";
import { quietLog } from "../support/engine.ts";
import { until } from "../support/until.ts";

const ASKED = Date.parse("2026-03-02T23:00:00Z");
const MINUTE = 60_000;

/** A question that expires after 30 minutes, across any number of daemon restarts, in quiet hours by default. */
function question(quietHours = "00:00-23:59") {
  const store = openStore(":memory:");
  const rows = createOutboxRows(store);
  const told: string[] = [];
  const approval = {
    ...{ id: "abcde", conversation: "main", squad: null, summary: "run it", state: "waiting" },
    ...{ owner: { kind: "message", id: "m_1" }, createdAt: new Date(ASKED).toISOString() },
    expiresAt: new Date(ASKED + 30 * MINUTE).toISOString(),
  } as unknown as Approval;
  const clock = { at: ASKED };
  const desk = createNews({
    ...{ config: () => ({ quietHours }), findMessage: () => undefined, findApproval: () => approval, findWork: () => undefined },
    ...{ filterOf: () => undefined, squadFilterOf: () => undefined, now: () => new Date(clock.at) },
  });
  let hear: (event: Event) => void = () => undefined;
  let end: () => Promise<void> = async () => undefined;
  onTestFinished(async () => {
    await end();
    store.close();
  });
  return {
    told,
    approval,
    rows,
    /** Runs IO from one minute after the question until another. */
    async life(minute: number, to: number) {
      await end();
      const outbox = createOutbox({
        rows,
        deliver(owed) {
          if (desk.isHeldBack(owed)) return "held";
          told.push(owed.kind);
          return "delivered";
        },
        log: quietLog,
      });
      const deps = {
        hub: {
          subscribe(listener: typeof hear) {
            hear = listener;
            return () => undefined;
          },
        },
        approvals: { waiting: () => (clock.at < ASKED + 30 * MINUTE && approval.state === "waiting" ? [approval] : []) },
        askers: { ofMessage: () => ({ channel: "telegram", chatId: 1 }) },
        now: () => clock.at,
      } as unknown as ApprovalNewsDeps;
      const news = createApprovalNews({ ...deps, outbox, log: quietLog });
      end = async () => {
        news.close();
        await outbox.close();
      };
      for (clock.at = ASKED + minute * MINUTE; clock.at <= ASKED + to * MINUTE; clock.at += MINUTE) {
        outbox.start();
        if (clock.at === ASKED + minute * MINUTE) news.start();
        // Another question makes it check again.
        hear({ id: 1, type: "approval.asked", data: approval } as unknown as Event);
      }
      await until("everything to be handed over", () => rows.waiting() === 0);
    },
  };
}

test("a question is told and repeated once, in quiet hours too, however often IO is restarted meanwhile", async () => {
  const { told, life } = question();
  await life(0, 19);
  expect(told).toEqual(["approval"]);
  await life(19, 21);
  expect(told).toEqual(["approval", "reminder"]);
  await life(21, 22);
  await life(22, 40);
  expect(told).toEqual(["approval", "reminder"]);
});

test("a repeat that IO was not there for comes when it is back, and not once the question has expired or is decided", async () => {
  const late = question();
  await late.life(0, 5);
  await late.life(25, 26);
  expect(late.told).toEqual(["approval", "reminder"]);
  const expired = question();
  await expired.life(0, 5);
  await expired.life(31, 32);
  expect(expired.told).toEqual(["approval"]);
  const decided = question();
  await decided.life(0, 5);
  decided.approval.state = "allowed";
  await decided.life(25, 26);
  expect(decided.told).toEqual(["approval"]);
});
