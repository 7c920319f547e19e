import { describe, expect, onTestFinished, test } from "vitest";
import type { Engine } from "../../../src/engine/port.ts";
import type { TurnEvent } from "../../../src/protocol/turns.ts";
import { turn } from "../../support/engine.ts";
import { temporaryFolder } from "../../support/home.ts";
import { soon } from "../../support/soon.ts";
import { until } from "../../support/until.ts";
import { chat, message, messageItem, type RawAnswer, response, say, startRaw, textBlock } from "../../support/wire-server.ts";
import { engineOn, sessionSpec } from "../../support/wires.ts";

const models = [{ id: "m", contextWindow: 4_096 }];
const WIRES = [
  {
    name: "completions",
    settings: (origin: string) => ({ baseUrl: `${origin}/v1`, model: "m", models }),
    answer: (text: string, cut = false) => chat([{ content: text }], cut ? "length" : "stop"),
  },
  {
    name: "responses",
    settings: (origin: string) => ({ baseUrl: `${origin}/v1`, wireApi: "responses", model: "m", models }),
    answer: (text: string, cut = false) => response([messageItem("msg_1", text)], cut ? "incomplete" : "completed"),
  },
  {
    name: "messages",
    settings: (origin: string) => ({ type: "anthropic", baseUrl: origin, model: "m", models }),
    answer: (text: string, cut = false) => message([textBlock(text)], cut ? "max_tokens" : "end_turn"),
  },
];
/** The beginning of an answer, without its end. */
const half = (events: unknown[]) => events.slice(0, events.findLastIndex((each) => /delta/.test(JSON.stringify(each))) - 1);
const isSummary = (text: string) => /detailed summary of the conversation so far/.test(text);
const isContinued = (text: string) => /where you left off/.test(text);
const LONG = "alpha beta gamma delta ".repeat(60);

describe.each(WIRES)("on $name", ({ settings, answer }) => {
  async function begin(raw: RawAnswer) {
    const server = await startRaw(raw);
    const folder = temporaryFolder();
    const engine: Engine = await engineOn(folder, settings(server.origin));
    onTestFinished(() => engine.stop());
    return { server, session: engine.session(sessionSpec("s", folder)), folder, engine };
  }
  /** Talks until the conversation has to be summarised, or the turn that does so is stopped. */
  async function talkUntilSummary(session: ReturnType<Engine["session"]>, isOver: () => boolean, signal?: AbortSignal) {
    for (let index = 0; index < 40; index += 1) {
      const result = await session.run(turn(`${index} ${LONG}`, signal ? { signal } : {}));
      if (isOver() || result.outcome !== "done") return result;
    }
    throw new Error("nothing had to be shortened");
  }

  test("a turn that is stopped hangs up at once, in the middle of an answer", async () => {
    const { server, session } = await begin((_, reply) => say(reply, half(answer("and so on")), { end: false }));
    const stop = new AbortController();
    const running = session.run(turn("go", { signal: stop.signal }));
    await until("the answer's beginning", () => server.requests.length === 1);
    stop.abort();
    const stopped = performance.now();
    expect(await running).toMatchObject({ outcome: "aborted" });
    await until("the end of the connection", () => server.requests[0]!.left, 1_000);
    expect(performance.now() - stopped).toBeLessThan(soon(1_500));
    expect(server.requests).toHaveLength(1);
  });

  test("a turn that is stopped while a provider is silent hangs up at once", async () => {
    const { server, session } = await begin(() => undefined);
    const stop = new AbortController();
    const running = session.run(turn("go", { signal: stop.signal }));
    await until("the request", () => server.requests.length === 1);
    stop.abort();
    expect(await running).toMatchObject({ outcome: "aborted" });
    await until("the end of the connection", () => server.requests[0]!.left, 1_000);
  });

  test("a turn that is stopped in the rest of a cut answer hangs up at once, and asks no more", async () => {
    const { server, session } = await begin(({ text }, reply) =>
      isContinued(text) ? say(reply, half(answer("two")), { end: false }) : say(reply, answer("One, ", true)),
    );
    const stop = new AbortController();
    const running = session.run(turn("go", { signal: stop.signal }));
    await until("the second request", () => server.requests.length === 2);
    stop.abort();
    expect(await running).toMatchObject({ outcome: "aborted" });
    await until("the end of the connection", () => server.requests[1]!.left, 1_000);
    expect(server.requests).toHaveLength(2);
  });

  test("a turn that is stopped while a summary is made hangs up at once, and the conversation goes on whole", async () => {
    let hangs = true;
    const { server, session } = await begin(({ text }, reply) => {
      if (!isSummary(text)) return say(reply, answer("noted"));
      return hangs ? say(reply, half(answer("They")), { end: false }) : say(reply, answer("a good summary"));
    });
    const stop = new AbortController();
    const summaries = () => server.requests.filter(({ text }) => isSummary(text));
    const running = talkUntilSummary(session, () => false, stop.signal);
    await until("the summary's beginning", () => summaries().length === 1, 30_000);
    const before = server.requests.length;
    stop.abort();
    expect(await running).toMatchObject({ outcome: "aborted" });
    await until("the end of the connection", () => summaries()[0]!.left, 1_000);
    expect(server.requests).toHaveLength(before);
    hangs = false;
    expect(await session.run(turn("and now?"))).toMatchObject({ outcome: "done", text: "noted" });
    expect(server.requests.at(-1)!.text).toContain("a good summary");
  });

  test("a summary that fails for a moment is made again, not done without", { timeout: 60_000 }, async () => {
    let failed = 0;
    const { server, session } = await begin(({ text }, reply) => {
      if (!isSummary(text)) return say(reply, answer("noted"));
      if (failed++ > 0) return say(reply, answer("a good summary"));
      reply.writeHead(503, { "content-type": "application/json" }).end('{"error":{"message":"busy"}}');
    });
    const result = await talkUntilSummary(session, () => failed > 0);
    expect(result).toMatchObject({ outcome: "done", text: "noted" });
    const [first, second] = server.requests.filter(({ text }) => isSummary(text));
    expect(second!.body).toEqual(first!.body);
    expect(server.requests.at(-1)!.text).toContain("a good summary");
  });

  test("a provider that never makes a summary ends no conversation", { timeout: 60_000 }, async () => {
    let failed = 0;
    const { session } = await begin(({ text }, reply) => {
      if (!isSummary(text)) return say(reply, answer("noted"));
      failed += 1;
      reply.writeHead(500, { "content-type": "application/json" }).end('{"error":{"message":"no"}}');
    });
    expect(await talkUntilSummary(session, () => failed > 0)).toMatchObject({ outcome: "done", text: "noted" });
  });

  test("a model that has no word for a summary does not lose what was said", { timeout: 60_000 }, async () => {
    let asked = 0;
    const { server, session } = await begin(({ text }, reply) => {
      if (!isSummary(text)) return say(reply, answer(`I call it PURPLE-${server.requests.length}.`));
      asked += 1;
      return say(reply, answer(" "));
    });
    await talkUntilSummary(session, () => asked > 0);
    expect(server.requests.at(-1)!.text).toMatch(/Summary:\\n[^"]*PURPLE-\d/);
  });

  test("the rest of a cut answer that breaks off is asked for again, and the answer is whole", async () => {
    let tries = 0;
    const { session } = await begin(({ text }, reply) => {
      if (!isContinued(text)) return say(reply, answer("One, ", true));
      tries += 1;
      if (tries > 1) return say(reply, answer("two."));
      say(reply, half(answer("tw")), { end: false });
      reply.write(": what was sent so far has left this process\n\n", () => reply.destroy());
    });
    const events: TurnEvent[] = [];
    const result = await session.run(turn("go", { onEvent: (event) => events.push(event) }));
    expect(result).toMatchObject({ outcome: "done", text: "One, two." });
    expect(events.some(({ kind }) => kind === "restarted")).toBe(true);
  });

  test("a provider that does not let an answer be continued keeps what it said", async () => {
    const { session } = await begin(({ text }, reply) => {
      if (!isContinued(text)) return say(reply, answer("One, two", true));
      reply.writeHead(400, { "content-type": "application/json" }).end('{"error":{"message":"roles must alternate"}}');
    });
    const result = await session.run(turn("go"));
    expect(result).toMatchObject({ outcome: "done" });
    expect(result.text).toMatch(/^One, two\n\n\[The answer was cut here.*roles must alternate/);
  });
});
