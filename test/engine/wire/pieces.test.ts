import type { CopilotRequestContext } from "@github/copilot-sdk";
import { expect, test } from "vitest";
import { type HandlerDeps, ModelHandler } from "../../../src/engine/wire/handler.ts";
import { quietLog } from "../../support/engine.ts";
import { until } from "../../support/until.ts";

/** The pieces that the runtime would receive for these lines. */
function opened(lines: () => AsyncGenerator<string>, failures: unknown[] = []) {
  class Opened extends ModelHandler {
    ask = (request: Request, context: CopilotRequestContext) => this.sendRequest(request, context);
  }
  const deps = {
    exchanger: { answer: lines },
    address: () => ({ url: "http://127.0.0.1:1", headers: {} }),
    observerOf: () => ({
      alive: () => undefined,
      served: () => undefined,
      refused: () => undefined,
      failed: (failure: unknown) => failures.push(failure),
      called: () => undefined,
    }),
    log: quietLog,
  } as unknown as HandlerDeps;
  const request = new Request("http://127.0.0.1:1/v1/chat/completions", {
    method: "POST",
    body: JSON.stringify({ model: "m", stream: true }),
  });
  const context = { sessionId: "s", signal: new AbortController().signal } as CopilotRequestContext;
  return new Opened(deps).ask(request, context).then((response) => {
    const reader = response.body!.getReader();
    return {
      next: async () => {
        const { value, done } = await reader.read();
        return done ? undefined : new TextDecoder().decode(value);
      },
      cancel: () => reader.cancel(),
    };
  });
}

test("lines that are there together are one piece", async () => {
  const answer = await opened(async function* () {
    yield* ["one ", "two ", "three"];
  });
  expect([await answer.next(), await answer.next()]).toEqual(["one two three", undefined]);
});

test("a line does not wait for one that comes later", async () => {
  let goOn = () => {};
  const answer = await opened(async function* () {
    yield "now";
    await new Promise<void>((resolve) => (goOn = resolve));
    yield "later";
  });
  expect(await answer.next()).toBe("now");
  goOn();
  expect([await answer.next(), await answer.next()]).toEqual(["later", undefined]);
});

test("what came before a failure is heard before it", async () => {
  const failures: unknown[] = [];
  const answer = await opened(async function* () {
    yield "begun ";
    yield "well";
    throw new Error("cut off");
  }, failures);
  expect(await answer.next()).toBe("begun well");
  await expect(answer.next()).rejects.toThrow();
  expect(failures).toHaveLength(1);
});

test("an answer without end is not gathered without end", async () => {
  let told = 0;
  const answer = await opened(async function* () {
    for (;;) {
      told += 1;
      yield "x".repeat(1_000);
    }
  });
  expect((await answer.next())!.length).toBeLessThan(70_000);
  // One more piece may be prepared before it is requested.
  await until("it waits to be read", () => told > 0);
  expect(told).toBeLessThan(200);
  await answer.cancel();
});
