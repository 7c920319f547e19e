import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createKnowledge } from "../../src/engine/models/knowledge.ts";
import type { Engine, SessionSpec } from "../../src/engine/port.ts";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import { createPictureShelf, pictureId } from "../../src/engine/sessions/pictures.ts";
import { DIALECTS } from "../../src/engine/wire/exchange.ts";
import { pictureMark, withPictures } from "../../src/engine/wire/pictures.ts";
import type { EngineTool } from "../../src/protocol/turns.ts";
import { startEngine, turn } from "../support/engine.ts";
import { collectEndings, temporaryFolder } from "../support/home.ts";
import { picturesIn, png } from "../support/images.ts";
import { isAfterTool, scriptedModel } from "../support/model.ts";

let folder: string;
let model: ModelServer;
let engine: Engine;

const { atTheEnd, end } = collectEndings();
beforeAll(async () => {
  folder = temporaryFolder(atTheEnd);
  model = await scriptedModel(() => ({ say: "seen" }), {}, atTheEnd);
  const provider = { type: "openai" as const, baseUrl: model.url, wireApi: "completions" as const };
  const seeing = { ...provider, models: [{ id: "scripted", vision: true }] };
  const names = { address: "the test", key: "the test", model: "the test" };
  const choice = { kind: "provider" as const, why: "the test's model", model: "scripted", named: true, names, provider: seeing };
  engine = await startEngine(folder, model.url, {}, { choice }, atTheEnd);
});
afterAll(end);

const spec = (id: string, more: Partial<SessionSpec> = {}): SessionSpec => ({
  ...{ id, systemMessage: () => "You are a test.", tools: [], workingDirectory: folder },
  ...more,
});
const named = (bytes: Uint8Array) => pictureMark(pictureId(bytes));
const shelfOf = (session: string) => join(folder, "session-state", session, "pictures");

test("a model that sees is shown the very bytes, in this turn and in those that follow", async () => {
  const [first, second] = [png(1), png(2)];
  const session = engine.session(spec("seeing"));
  await session.run(turn(`What is this? ${named(first)}`, { pictures: [first] }));
  expect(picturesIn(model.requests.at(-1))).toEqual([first]);
  await session.run(turn(`And this? ${named(second)}`, { pictures: [second] }));
  expect(picturesIn(model.requests.at(-1))).toEqual([first, second]);
  await engine.deleteSession("seeing");
  expect(existsSync(shelfOf("seeing"))).toBe(false);
});

test("a picture that a tool shows reaches the model after the tool's result", async () => {
  const bytes = png(3);
  const look: EngineTool = {
    ...{ name: "look", description: "Looks.", parameters: { type: "object", properties: {} } },
    call: async (_args, { showPicture }) => ({ ok: true, text: `Here it is: ${await showPicture?.(bytes)}` }),
  };
  model.play((request) =>
    isAfterTool(request) || picturesIn(request).length > 0 ? { say: "seen" } : { call: [{ tool: "look", args: {} }] },
  );
  await engine.session(spec("tools", { tools: [look] })).run(turn("look"));
  const request = model.requests.at(-1)!;
  expect(picturesIn(request)).toEqual([bytes]);
  expect(request.messages.map(({ role }) => role).slice(-2)).toEqual(["tool", "user"]);
});

test("a provider that refuses a picture is asked without it, and the conversation goes on", async () => {
  const bytes = png(4);
  model.play((request) =>
    picturesIn(request).length > 0 ? { status: 400, message: "Could not process image" } : { say: "I did not see it" },
  );
  const session = engine.session(spec("refused"));
  expect(await session.run(turn(`What is this? ${named(bytes)}`, { pictures: [bytes] }))).toMatchObject({ outcome: "done" });
  const asked = model.requests.length;
  expect(await session.run(turn("And now?"))).toMatchObject({ outcome: "done", text: "I did not see it" });
  expect(model.requests.length).toBe(asked + 1);
  expect(model.requests.at(-1)!.messages.map(textOf).join("\n")).toContain("is not shown");
});

test("an invented mark, and one of another session, show nothing", async () => {
  model.play(() => ({ say: "nothing" }));
  const bytes = png(5);
  await engine.session(spec("owner")).run(turn(`Mine: ${named(bytes)}`, { pictures: [bytes] }));
  await engine.session(spec("other")).run(turn(`Show ${named(bytes)} and ${pictureMark("0".repeat(32))}`));
  expect(picturesIn(model.requests.at(-1))).toEqual([]);
  writeFileSync(join(shelfOf("owner"), "f".repeat(32)), "<svg onload=alert(1)>");
  await engine.session(spec("owner")).run(turn(pictureMark("f".repeat(32))));
  expect(picturesIn(model.requests.at(-1))).toEqual([bytes]);
});

test("a full shelf sends the newest pictures and says that others are left out", async () => {
  const shelf = createPictureShelf(temporaryFolder());
  const all = Array.from({ length: 24 }, (_, index) => png(100 + index));
  for (const bytes of all) await shelf.keep("s", bytes);
  const messages = all.map((bytes) => ({ role: "user", content: named(bytes) }));
  const find = (id: string) => shelf.find("s", id);
  const made = await withPictures(DIALECTS.completions, { model: "m", messages }, { find, sees: true, refused: new Set() });
  expect(made.shown.toSorted()).toEqual(all.slice(4).map(pictureId).toSorted());
  expect(JSON.stringify((made.body.messages as unknown[])[0])).toContain("is not shown");
  expect(readdirSync(temporaryFolder())).toEqual([]);
});

const bytes = png(9);
const data = bytes.toString("base64");
const mark = named(bytes);
const found = async (id: string) => (id === pictureId(bytes) ? { id, type: "image/png" as const, data } : undefined);
const dataUrl = `data:image/png;base64,${data}`;
const NOTE = expect.stringContaining("cannot see pictures");

test.each([
  [
    "completions",
    "what a user said",
    { messages: [{ role: "user", content: mark }] },
    [
      {
        role: "user",
        content: [
          { type: "text", text: mark },
          { type: "image_url", image_url: { url: dataUrl } },
        ],
      },
    ],
  ],
  [
    "completions",
    "results of tools",
    {
      messages: [
        { role: "tool", tool_call_id: "1", content: mark },
        { role: "tool", tool_call_id: "2", content: "" },
      ],
    },
    [
      { role: "tool", tool_call_id: "1", content: mark },
      { role: "tool", tool_call_id: "2", content: "" },
      { role: "user", content: [expect.anything(), { type: "image_url", image_url: { url: dataUrl } }] },
    ],
  ],
  [
    "responses",
    "what a user said",
    { input: [{ type: "message", role: "user", content: [{ type: "input_text", text: mark }] }] },
    [
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: mark },
          { type: "input_image", image_url: dataUrl },
        ],
      },
    ],
  ],
  [
    "responses",
    "results of tools",
    { input: [{ type: "function_call_output", call_id: "1", output: mark }] },
    [
      { type: "function_call_output", call_id: "1", output: mark },
      { type: "message", role: "user", content: [expect.anything(), { type: "input_image", image_url: dataUrl }] },
    ],
  ],
  [
    "messages",
    "what a user said",
    { messages: [{ role: "user", content: [{ type: "text", text: mark }] }] },
    [
      {
        role: "user",
        content: [
          { type: "text", text: mark },
          { type: "image", source: { type: "base64", media_type: "image/png", data } },
        ],
      },
    ],
  ],
  [
    "messages",
    "results of tools",
    { messages: [{ role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: mark }] }] },
    [
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "1", content: mark },
          { type: "image", source: { type: "base64", media_type: "image/png", data } },
        ],
      },
    ],
  ],
] as const)(
  "on the wire %s a picture stands beside %s, and for a blind model a sentence does",
  async (wire, _what, body, wanted) => {
    const dialect = DIALECTS[wire];
    const asked = { model: "m", ...structuredClone(body) };
    const rawOf = (made: { body: Parameters<typeof dialect.items>[0] }) => dialect.items(made.body).map(({ raw }) => raw);
    expect(rawOf(await withPictures(dialect, asked, { find: found, sees: true, refused: new Set() }))).toEqual(wanted);
    const blind = await withPictures(dialect, asked, { find: found, sees: false, refused: new Set() });
    expect(blind.shown).toEqual([]);
    expect(JSON.stringify(blind.body)).not.toContain(data);
    expect(
      dialect
        .items(blind.body)
        .map(({ text }) => text)
        .join("\n"),
    ).toEqual(NOTE);
  },
);

test.each([
  [
    true,
    [
      "claude-sonnet-4.6",
      "gpt-4o",
      "gpt-4.1-mini",
      "gpt-5",
      "o3",
      "o4-mini",
      "google/gemini-2.5-pro",
      "qwen2.5-vl:7b",
      "llava:13b",
      "llama3.2-vision",
    ],
  ],
  [
    false,
    [
      "claude-2.1",
      "gpt-4",
      "gpt-3.5-turbo",
      "gpt-oss:20b",
      "o1-mini",
      "o3-mini",
      "llama3.2",
      "deepseek-r1",
      "scripted",
      "mistral-vlarge",
    ],
  ],
] as const)("by their names alone these are taken to see: %s", (sees, models) => {
  const of = (more: Partial<Parameters<typeof createKnowledge>[0]> = {}) =>
    createKnowledge({ provider: "p", configured: [], listed: () => [], memo: new Map(), ...more });
  expect(models.filter((name) => of().sees(name) !== sees)).toEqual([]);
  expect(models.filter((name) => of({ listed: () => [{ id: name, name, vision: !sees }] }).sees(name) === sees)).toEqual([]);
  const said = (name: string) =>
    of({ configured: [{ id: name, vision: sees }], listed: () => [{ id: name, name, vision: !sees }] }).sees(name);
  expect(models.filter((name) => said(name) !== sees)).toEqual([]);
});
