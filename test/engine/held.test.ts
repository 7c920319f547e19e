import { expect, test } from "vitest";
import type { TurnEvent } from "../../src/protocol/turns.ts";
import { startEngine, turn } from "../support/engine.ts";
import { temporaryFolder } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { until } from "../support/until.ts";
import { noteTool, sessionSpec } from "../support/wires.ts";

const begin = async (steps = 2) => {
  const model = await scriptedModel((request) =>
    request.messages.filter(({ role }) => role === "tool").length < steps
      ? { call: [{ tool: "note", args: { text: "x" } }] }
      : { say: "Noted." },
  );
  const folder = temporaryFolder();
  const engine = await startEngine(folder, model.url);
  return { model, session: engine.session(sessionSpec("s", folder, [noteTool([])])) };
};

test("while a call is held back neither the limit of silence nor the cap of its turn runs", async () => {
  const { model, session } = await begin();
  let asked = 0;
  const result = await session.run(
    turn("go on", {
      silenceMs: 3_000,
      capMs: 5_000,
      async beforeCall() {
        asked += 1;
        const started = performance.now();
        if (asked === 2) await until("longer than the turn may take", () => performance.now() - started > 6_000);
        return undefined;
      },
    }),
  );
  expect(result).toMatchObject({ outcome: "done", text: "Noted.", usage: { calls: 3 } });
  expect([asked, model.requests.length]).toEqual([3, 3]);
});

test("a call that must not be made is not, and ends the turn with the reason", async () => {
  const { model, session } = await begin();
  const events: TurnEvent[] = [];
  const result = await session.run(
    turn("go on", {
      onEvent: (event) => events.push(event),
      beforeCall: async () => (model.requests.length === 1 ? "the purse is empty" : undefined),
    }),
  );
  expect(result).toMatchObject({
    outcome: "failed",
    error: { code: "budget", message: expect.stringMatching(/^a budget is used up \(the purse is empty\)\. `io budget show`/) },
    usage: { calls: 1 },
    tools: ["note"],
  });
  expect(model.requests).toHaveLength(1);
  expect(events.filter(({ kind }) => kind === "usage")).toHaveLength(1);
  // The session is idle and continues with the next prompt.
  expect(await session.run(turn("and now"))).toMatchObject({ outcome: "done", text: "Noted." });
});

test("a turn that is stopped while a call is held back ends at once, and the call is never made", async () => {
  const { model, session } = await begin();
  const stop = new AbortController();
  let released: boolean | undefined;
  const result = await session.run(
    turn("go on", {
      signal: stop.signal,
      beforeCall: (signal) =>
        new Promise((resolve) => {
          signal.addEventListener("abort", () => {
            released = true;
            resolve(undefined);
          });
          stop.abort();
        }),
    }),
  );
  expect(result).toMatchObject({ outcome: "aborted", usage: { calls: 0 } });
  expect([released, model.requests.length]).toEqual([true, 0]);
});
