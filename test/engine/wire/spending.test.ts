import { expect, onTestFinished, test } from "vitest";
import type { ModelCall } from "../../../src/protocol/usage.ts";
import { turn } from "../../support/engine.ts";
import { temporaryFolder } from "../../support/home.ts";
import type { Act, Script } from "../../support/providers/act.ts";
import { startOpenAi } from "../../support/providers/openai.ts";
import { engineOn, noteTool, sessionSpec, WIRES } from "../../support/wires.ts";

const inOrder = (...acts: Act[]): Script => {
  let next = 0;
  return () => acts[Math.min(next++, acts.length - 1)]!;
};

async function engineFor(settings: Record<string, unknown>, sent: () => number) {
  const folder = temporaryFolder();
  const engine = await engineOn(folder, settings);
  onTestFinished(() => engine.stop());
  const calls: ModelCall[] = [];
  /** How many calls the provider had received each time permission for another was requested. */
  const asked = new Set<number>();
  const watched = (prompt: string, answer: () => string | undefined = () => undefined) =>
    turn(prompt, {
      onEvent: (event) => void (event.kind === "usage" && calls.push(event.call)),
      beforeCall: async () => {
        asked.add(sent());
        return answer();
      },
    });
  return { session: engine.session(sessionSpec("s", folder, [noteTool([])])), calls, asked, watched };
}

test.each(WIRES)(
  "each call is asked for before it is made and counted once, also what continues a cut answer: $name",
  async (wire) => {
    const provider = await wire.start(
      inOrder(
        { say: "Let me see.", call: [{ tool: "note", args: { text: "x" } }] },
        { say: ["One, ", "never said"], cutAfter: 1 },
        { say: "two." },
      ),
    );
    const { session, calls, asked, watched } = await engineFor(wire.settings(provider), () => provider.asked.length);
    expect(await session.run(watched("go on"))).toMatchObject({ outcome: "done", text: "One, two.", usage: { calls: 3 } });
    const served = provider.asked.map(({ inputTokens }) => inputTokens);
    expect(served).toHaveLength(3);
    expect([...asked]).toEqual([0, 1, 2]);
    expect(calls.map(({ inputTokens }) => inputTokens)).toEqual(served);
    for (const { cacheReadTokens, inputTokens, outputTokens } of calls) {
      expect(cacheReadTokens).toBeLessThanOrEqual(inputTokens);
      expect(outputTokens).toBeGreaterThan(0);
    }
  },
);

test("an answer is not continued when that must not be", async () => {
  const wire = WIRES[0]!;
  const provider = await wire.start(inOrder({ say: ["One, ", "never said"], cutAfter: 1 }, { say: "two." }));
  const { session, watched } = await engineFor(wire.settings(provider), () => provider.asked.length);
  const result = await session.run(watched("go on", () => (provider.asked.length === 1 ? "no more" : undefined)));
  expect(result).toMatchObject({ outcome: "failed", error: { code: "budget" }, usage: { calls: 1 } });
  expect(provider.asked).toHaveLength(1);
});

test("summaries of a conversation that grew too long are asked for and counted like any other call", {
  timeout: 120_000,
}, async () => {
  const KEY = "sk-proj-right-key-for-the-tests-0000";
  const models = { small: { window: 4_096, maxOutput: 512 } };
  const provider = await startOpenAi({ key: KEY, script: () => ({ say: "lorem ipsum dolor sit amet ".repeat(24) }), models });
  const { session, calls, asked, watched } = await engineFor(
    {
      ...{ baseUrl: provider.url, apiKey: KEY, model: "small", models: [{ id: "small", contextWindow: 4_096 }] },
    },
    () => provider.asked.length,
  );
  let turns = 0;
  for (; provider.asked.length === turns && turns < 20; turns += 1)
    expect(await session.run(watched(`message ${turns}: ${"alpha beta gamma delta ".repeat(50)}`))).toMatchObject({
      outcome: "done",
    });
  expect(provider.asked.length).toBeGreaterThan(turns);
  expect([...asked]).toEqual(provider.asked.map((_, index) => index));
  expect(calls.map(({ inputTokens }) => inputTokens)).toEqual(provider.asked.map(({ inputTokens }) => inputTokens));
});
