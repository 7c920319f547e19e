import { beforeAll, describe, expect, test } from "vitest";
import type { Engine } from "../../../src/engine/port.ts";
import type { TurnEvent } from "../../../src/protocol/turns.ts";
import { turn } from "../../support/engine.ts";
import { collectEndings, temporaryFolder } from "../../support/home.ts";
import type { Act, Script } from "../../support/providers/act.ts";
import type { Provider } from "../../support/providers/core.ts";
import { engineOn, noteTool, sessionSpec, WIRES } from "../../support/wires.ts";

/** Plays these acts one after another, and repeats the last one forever. */
const inOrder = (...acts: Act[]): Script => {
  let next = 0;
  return () => acts[Math.min(next++, acts.length - 1)]!;
};

describe.each(WIRES)("on $name", (wire) => {
  let provider: Provider;
  let engine: Engine;
  let folder: string;
  let count = 0;

  beforeAll(async () => {
    const { atTheEnd, end } = collectEndings();
    folder = temporaryFolder(atTheEnd);
    provider = await wire.start(() => ({ say: "ok" }), atTheEnd);
    engine = await engineOn(folder, wire.settings(provider));
    atTheEnd(() => engine.stop());
    return end;
  });
  const ask = async (script: Script, { tools = [] as unknown[], name = `s${count++}`, prompt = "go on" } = {}) => {
    provider.script(script);
    const events: TurnEvent[] = [];
    const from = provider.requests.length;
    const spec = sessionSpec(name, folder, [noteTool(tools)]);
    const result = await engine.session(spec).run(turn(prompt, { onEvent: (event) => events.push(event) }));
    return { result, events, name, requests: provider.requests.slice(from).filter(({ method }) => method === "POST") };
  };

  test("the first message is answered, with a tool, and nothing in it is refused", async () => {
    const notes: unknown[] = [];
    const { result, requests } = await ask(
      ({ afterTool }) =>
        afterTool ? { say: ["All ", "done."] } : { say: "Let me see.", call: [{ tool: "note", args: { text: "x" } }] },
      { tools: notes },
    );
    expect(result).toMatchObject({ outcome: "done", text: "All done.", tools: ["note"] });
    expect(notes).toEqual([{ text: "x" }]);
    expect(requests.map(({ refusal }) => refusal)).toEqual([undefined, undefined]);
    expect(result.served).toHaveLength(1);
  });

  test("an answer that was cut by the output limit is one whole answer, to the reader, in the reply and in what follows", async () => {
    const parts = inOrder(
      { say: ["One, ", "never said"], cutAfter: 1 },
      { say: ["two, ", "never said"], cutAfter: 1 },
      { say: "three 🎉." },
    );
    const { result, events, name, requests } = await ask(parts);
    expect(result).toMatchObject({ outcome: "done", text: "One, two, three 🎉." });
    expect(events.map((event) => (event.kind === "delta" ? event.text : "")).join("")).toBe("One, two, three 🎉.");
    expect(requests).toHaveLength(3);
    expect(result.usage.calls).toBe(3);
    expect(events.filter(({ kind }) => kind === "restarted")).toEqual([]);
    const after = await ask(() => ({ say: "yes" }), { name });
    expect(after.requests[0]!.text).toContain("One, two, three 🎉.");
    expect(after.requests[0]!.text).not.toContain("left off");
  });

  test("an answer that goes on with a tool call after a cut makes the call", async () => {
    const notes: unknown[] = [];
    const { result } = await ask(
      inOrder(
        { say: ["First I ", "x"], cutAfter: 1 },
        { say: "note it.", call: [{ tool: "note", args: { text: "after the cut" } }] },
        { say: "Noted." },
      ),
      { tools: notes },
    );
    expect(result).toMatchObject({ outcome: "done", text: "Noted." });
    expect(notes).toEqual([{ text: "after the cut" }]);
  });

  test("a model that is cut for ever is stopped, and the answer says so", async () => {
    const { result, requests } = await ask(() => ({ say: ["again ", "x"], cutAfter: 1 }));
    expect(result.outcome).toBe("done");
    expect(result.text).toMatch(/^(again ){20}\n\n\[The answer was cut here/);
    expect(requests).toHaveLength(20);
  });

  test("a refusal ends as a refusal, with the model's words", async () => {
    const { result } = await ask(() => ({ refuse: "I can't help with that." }));
    expect(result).toMatchObject({ outcome: "failed", error: { code: "refused" } });
    expect(result.text + result.error!.message).toContain(wire.name === "anthropic" ? "declined" : "I can't help with that.");
  });

  test("an empty last word after tools that ran tells which ran", async () => {
    const { result } = await ask(({ afterTool }) =>
      afterTool ? { say: "" } : { call: [{ tool: "note", args: { text: "x" } }] },
    );
    expect(result).toMatchObject({ outcome: "failed", error: { code: "no_answer" }, tools: ["note"] });
    expect(result.error!.message).toMatch(/1 tool call: note/);
  });

  test.each([
    ["CRLF", { crlf: true }],
    ["comment lines", { comments: ["OPENROUTER PROCESSING"] }],
    ["letters split between chunks", { splitCharacters: true }],
    ["a line of 2 MB", { padding: 2_000_000 }],
  ])("%s do not disturb an answer", async (_, look) => {
    const { result, requests } = await ask(() => ({ say: ["Grüße ", "🎉", " und 日本"], wire: look }));
    expect(result).toMatchObject({ outcome: "done", text: "Grüße 🎉 und 日本" });
    expect(requests).toHaveLength(1);
  });

  test("an answer is whole once its end was told, also without a last word after it", async () => {
    const { result, requests } = await ask(() => ({ say: ["Grüße ", "🎉"], wire: { noDone: true } }));
    // On responses, that last event is the end itself: without it the answer broke off, and is requested again.
    const broke = wire.name === "responses";
    expect(result).toMatchObject(
      broke ? { outcome: "failed", error: { code: "unreachable" } } : { outcome: "done", text: "Grüße 🎉" },
    );
    expect(requests.length > 1).toBe(broke);
  });

  test("half a letter in a piece is joined with its other half, or replaced, and fails nothing", async () => {
    const { result, requests } = await ask(() => ({ say: ["a\ud83c", "\udf89b", "c\ud83c"] }));
    expect(result).toMatchObject({ outcome: "done", text: "a🎉bc\ufffd" });
    expect(requests).toHaveLength(1);
  });

  test("half a letter in what a person says reaches the provider as a letter", async () => {
    const { result, requests } = await ask(() => ({ say: "fine" }), { prompt: "cut \ud83c here" });
    expect(result).toMatchObject({ outcome: "done", text: "fine" });
    expect(requests.map(({ refusal }) => refusal)).toEqual([undefined]);
  });

  test("an error in the clothes of an answer is told in its own words", async () => {
    const { result } = await ask(() => ({ errorText: "the cat sat on the server", status: 400 }));
    expect(result).toMatchObject({ outcome: "failed", error: { code: "bad_request" } });
    expect(result.error!.message).toContain("the cat sat on the server");
    const { result: another } = await ask(() => ({ errorText: "the dog too", status: 200 }));
    expect(another.error!.message).toContain("the dog too");
  });

  test("a failure in the middle of an answer is tried again, and the reader is told that the answer begins anew", async () => {
    const { result, events } = await ask(
      inOrder({ say: ["half of "], ends: { message: "the backend went away", code: "server_error" } }, { say: "the whole" }),
    );
    expect(result).toMatchObject({ outcome: "done", text: "the whole" });
    expect(events.some(({ kind }) => kind === "restarted")).toBe(true);
  });

  test("an answer under another name is recorded under that name", async () => {
    const { result, events } = await ask(() => ({ say: "hi", as: "another-model-2026" }));
    expect(result.served).toEqual(["another-model-2026"]);
    expect(events.flatMap((event) => (event.kind === "usage" ? [event.call.model] : []))).toEqual(["another-model-2026"]);
  });

  test("parallel calls that come in turns all run, once each", async () => {
    const notes: unknown[] = [];
    const { result } = await ask(
      ({ afterTool }) =>
        afterTool
          ? { say: "both" }
          : {
              interleave: true,
              call: [
                { tool: "note", args: { text: "one" } },
                { tool: "note", args: { text: "two" } },
              ],
            },
      { tools: notes },
    );
    expect(result).toMatchObject({ outcome: "done", text: "both" });
    expect(notes).toHaveLength(2);
  });
});

describe("completions of other houses", () => {
  const [wire] = WIRES;
  let provider: Provider;
  let engine: Engine;
  let folder: string;
  beforeAll(async () => {
    const { atTheEnd, end } = collectEndings();
    folder = temporaryFolder(atTheEnd);
    provider = await wire!.start(() => ({ say: "ok" }), atTheEnd);
    engine = await engineOn(folder, wire!.settings(provider));
    atTheEnd(() => engine.stop());
    return end;
  });
  const ask = async (name: string, script: Script) => {
    provider.script(script);
    const notes: unknown[] = [];
    const result = await engine.session(sessionSpec(name, folder, [noteTool(notes)])).run(turn("go"));
    return { result, notes };
  };

  test.each([
    ["missing", null],
    ["empty", ""],
  ])("a tool call whose id is %s runs", async (name, id) => {
    const { result, notes } = await ask(`id-${name}`, ({ afterTool }) =>
      afterTool ? { say: "ran" } : { call: [{ tool: "note", args: { text: "x" }, id }] },
    );
    expect(result).toMatchObject({ outcome: "done", text: "ran" });
    expect(notes).toHaveLength(1);
  });

  test("two calls under one id both run, and a call without a position too", async () => {
    const { result, notes } = await ask("id-twice", ({ afterTool }) =>
      afterTool
        ? { say: "ran" }
        : {
            call: [
              { tool: "note", args: { text: "x" }, id: "same" },
              { tool: "note", args: { text: "y" }, id: "same" },
            ],
          },
    );
    expect(result).toMatchObject({ outcome: "done", text: "ran" });
    expect(notes).toHaveLength(2);
  });

  test("of several choices one is the answer", async () => {
    const { result } = await ask("choices", () => ({ say: "the first", choices: ["the second", "the third"] }));
    expect(result).toMatchObject({ outcome: "done", text: "the first" });
  });

  test("thoughts between tags are no part of the answer", async () => {
    const { result } = await ask("think", () => ({ think: ["Hmm, ", "let me <b>think</b>"], say: ["Forty", "-two"] }));
    expect(result).toMatchObject({ outcome: "done", text: "Forty-two" });
  });

  test("an answer in one body, though a stream was asked for, is an answer", async () => {
    const notes: unknown[] = [];
    provider.script(({ afterTool }) =>
      afterTool
        ? { say: "whole", wire: { oneBody: true } }
        : { call: [{ tool: "note", args: { text: "x" } }], wire: { oneBody: true } },
    );
    const result = await engine.session(sessionSpec("one-body", folder, [noteTool(notes)])).run(turn("go"));
    expect(result).toMatchObject({ outcome: "done", text: "whole" });
    expect(notes).toEqual([{ text: "x" }]);
  });

  test("arguments that are no JSON come back to the model as a mistake of its own", async () => {
    const { result, notes } = await ask("broken-args", ({ afterTool }) =>
      afterTool ? { say: "sorry" } : { call: [{ tool: "note", rawArgs: '{"text": "x' }] },
    );
    expect(result).toMatchObject({ outcome: "done", text: "sorry" });
    expect(notes).toEqual([]);
  });
});
