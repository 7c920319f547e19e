import { expect, onTestFinished, test } from "vitest";
import { createApprovalNews } from "../../src/orchestrator/approval-news.ts";
import { createOutbox } from "../../src/orchestrator/outbox.ts";
import type { Event } from "../../src/protocol/events.ts";
import type { Owed, Receipt } from "../../src/protocol/outbox.ts";
import { openStore } from "../../src/store/open.ts";
import { createOutboxRows } from "../../src/store/outbox.ts";
import { quietLog } from "../support/engine.ts";
import { FAULTS, failingConnection } from "../support/failing-connection.ts";
import { until } from "../support/until.ts";

const reply = (about: string, chatId = 1): Owed => ({
  kind: "reply",
  about,
  conversation: "main",
  source: { channel: "telegram", chatId },
  text: null,
  key: `reply:${about}`,
});

function outboxOn(deliver: (owed: Owed) => Promise<Receipt> | Receipt) {
  const store = openStore(":memory:");
  const rows = createOutboxRows(store);
  const outbox = createOutbox({ rows, deliver, log: quietLog, retryMs: 5 });
  onTestFinished(async () => {
    await outbox.close();
    store.close();
  });
  return { store, rows, outbox };
}

test("what is owed to one address arrives in order and once, and one that fails holds up its own address alone", async () => {
  const arrived: string[] = [];
  let refusals = 2;
  const { rows, outbox } = outboxOn(async ({ about, source }): Promise<Receipt> => {
    if (source.channel === "telegram" && source.chatId === 1 && refusals > 0) {
      refusals -= 1;
      throw new Error("no way there just now");
    }
    arrived.push(about);
    return "delivered";
  });
  outbox.start();
  for (const about of ["a", "b"]) outbox.owe(reply(about, 1));
  outbox.owe(reply("c", 2));
  outbox.owe(reply("c", 2));
  await until("all three", () => arrived.length === 3);
  expect(arrived).toEqual(["c", "a", "b"]);
  expect(rows.waiting()).toBe(0);
  expect(["a", "b", "c"].map((about) => rows.stateOf(`reply:${about}`))).toEqual(["delivered", "delivered", "delivered"]);
});

test("nothing is delivered that the transaction around it did not keep", async () => {
  const arrived: string[] = [];
  const { store, outbox } = outboxOn(({ about }) => {
    arrived.push(about);
    return "delivered";
  });
  outbox.start();
  expect(() =>
    store.transaction(() => {
      outbox.owe(reply("lost"));
      throw new Error("it did not happen");
    }),
  ).toThrow("it did not happen");
  store.transaction(() => outbox.owe(reply("kept")));
  await until("the one that happened", () => arrived.length > 0);
  expect(arrived).toEqual(["kept"]);
});

test("what a channel keeps stays owed until somebody has it, and what nobody can take is not tried for ever", async () => {
  const tries: string[] = [];
  const { rows, outbox } = outboxOn(({ about }) => {
    tries.push(about);
    return about === "gone" ? "undeliverable" : "kept";
  });
  outbox.start();
  outbox.owe(reply("kept"));
  outbox.owe(reply("gone"));
  await until("both", () => rows.stateOf("reply:gone") === "undeliverable");
  expect(rows.stateOf("reply:kept")).toBe("kept");
  expect(rows.waiting()).toBe(1);
  outbox.received("reply:kept");
  expect(rows.stateOf("reply:kept")).toBe("delivered");
  expect(rows.waiting()).toBe(0);
  expect(tries).toEqual(["kept", "gone"]);
});

test("what an earlier life still owed is delivered by the next, whoever asked", async () => {
  const first = outboxOn(() => "delivered");
  first.store.transaction(() => first.outbox.owe(reply("early")));
  expect(first.rows.stateOf("reply:early")).toBe("owed");
  const arrived: string[] = [];
  const next = createOutbox({
    rows: first.rows,
    deliver: ({ about }) => {
      arrived.push(about);
      return "delivered";
    },
    log: quietLog,
  });
  onTestFinished(() => next.close());
  next.start();
  await until("the old debt", () => first.rows.stateOf("reply:early") === "delivered");
  expect(arrived).toEqual(["early"]);
});

test("a question that a full disk kept from being passed on reaches who asked when there is room", async () => {
  const connection = failingConnection();
  const store = openStore(":memory:", { connect: connection.connect });
  const arrived: string[] = [];
  const deliver = ({ about }: Owed): Receipt => {
    arrived.push(about);
    return "delivered";
  };
  const outbox = createOutbox({ rows: createOutboxRows(store), deliver, log: quietLog, retryMs: 5 });
  outbox.start();
  onTestFinished(async () => {
    await outbox.close();
    store.close();
  });
  let tell: (event: Event) => void = () => {};
  const subscribe = (listener: typeof tell) => {
    tell = listener;
    return () => undefined;
  };
  const asker = { ofMessage: () => ({ channel: "telegram", chatId: 1 }) };
  const news = createApprovalNews({
    ...{ hub: { subscribe }, outbox, approvals: { waiting: () => [] }, log: quietLog },
    ...({ askers: asker, squads: {} } as unknown as Pick<Parameters<typeof createApprovalNews>[0], "askers" | "squads">),
  });
  news.start();
  connection.failAt(1, FAULTS[0]!);
  const data = { id: "abcde", conversation: "main", owner: { kind: "message", id: "m_1" } };
  tell({ id: 1, type: "approval.asked", data } as unknown as Event);
  expect([connection.hasFailed(), arrived]).toEqual([true, []]);
  await until("the question", () => arrived.length === 1);
  expect(arrived).toEqual(["abcde"]);
});
