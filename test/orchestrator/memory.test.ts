import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import { type ChatRequest, textOf } from "../../src/engine/rehearsal/wire.ts";
import { startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../support/model.ts";
import { ownNamesIn } from "../support/own-names.ts";
import { characterOf, delegate, ended, project, squadWith } from "../support/squads.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

const WINDOW = 16_384;
const FACT = "BLUE-7731";
const isSummary = (request: ChatRequest) => /detailed summary of the conversation so far/.test(lastUserText(request));
const long = (index: number) => `part ${index}: ${"alpha beta gamma delta ".repeat(450)}`;

let model: ModelServer;
let daemon: TestDaemon;
beforeAll(async () => {
  // The model never says the fact by itself. Its summaries contain it only if they were given it.
  model = await scriptedModel(
    (request) => {
      const wanted = /\bfind (\S+)$/.exec(lastUserText(request))?.[1];
      if (wanted !== undefined)
        return isAfterTool(request)
          ? { say: `Found: ${textOf(request.messages.at(-1))}` }
          : { call: [{ tool: "conversation_search", args: { query: wanted } }] };
      if (!isSummary(request)) return { say: "lorem ipsum dolor sit amet ".repeat(40) };
      return { say: lastUserText(request).includes(FACT) ? `The code is ${FACT}.` : "They talked." };
    },
    { models: ["scripted"] },
    atTheEnd,
  );
  const provider = { baseUrl: model.url, apiKey: "scripted-key-0123456789", model: "scripted" };
  const models = [{ id: "scripted", contextWindow: WINDOW }];
  daemon = await startDaemonProcess(temporaryHome({ provider: { ...provider, models } }, atTheEnd), {}, atTheEnd);
}, 60_000);

const shownLast = () => JSON.stringify(model.requests.findLast((request) => !isSummary(request))!.messages);
const summaries = () => model.requests.filter(isSummary).length;

test("a conversation knows after several windows what was said in it once", { timeout: 120_000 }, async () => {
  await daemon.ask({ text: `${long(0)} And my code is ${FACT}.` });
  for (let index = 1; summaries() < 4; index += 1) expect((await daemon.ask({ text: long(index) })).status).toBe("done");
  expect((await daemon.ask({ text: "What is my code?" })).status).toBe("done");
  expect(shownLast()).toContain(FACT);
  expect(
    model.requests.filter((request) => JSON.stringify(request.messages).includes(`code is ${FACT}.`)).length,
  ).toBeGreaterThan(4);
});

test("an agent knows after several windows of tasks what one of them said once", { timeout: 120_000 }, async () => {
  const [agent] = await squadWith(daemon, project({ "README.md": "# A\n" }, atTheEnd), "lasting", ["Engineer"]);
  const work = async (task: string) => {
    const { id } = await delegate(daemon, "lasting", { task, agent: agent! });
    expect(await ended(daemon, id, 60_000)).toMatchObject({ status: "done" });
  };
  const before = summaries();
  await work(`${long(0)} And the code is ${FACT}.`);
  for (let index = 1; summaries() < before + 4; index += 1) await work(long(index));
  await work("Say the code.");
  const asked = model.requests.findLast((request) => characterOf(request) === agent && !isSummary(request))!;
  expect(lastUserText(asked)).toContain("Say the code.");
  expect(JSON.stringify(asked.messages)).toContain(FACT);
});

test("what was said is found, summarised or not, by IO and by the agents of squads, and its own question is not", {
  timeout: 60_000,
}, async () => {
  const { id } = await daemon.ask({ text: "The gardener's number is TEAL-9901.", conversation: "garden" });
  const { reply } = await daemon.ask({ text: "find teal-9901", conversation: "elsewhere" });
  expect(reply).toMatch(
    /^Found: --- data (\w+)\n- [^\n]*the user \(in garden, message m_\w+\): The gardener's number is TEAL-9901\.\n--- end \1$/,
  );
  expect(reply).toContain(id);
  expect((await daemon.ask({ text: `find ${FACT}` })).reply).toContain(`And my code is ${FACT}.`);
  const { id: task } = await delegate(daemon, "lasting", { task: "find TEAL-9901" });
  expect((await ended(daemon, task, 60_000)).result).toContain("The gardener's number is TEAL-9901.");
  // Facts that only an agent was told are found as well.
  const { id: asked } = await delegate(daemon, "lasting", { task: "The shed's number is RUST-4410." });
  await ended(daemon, asked, 60_000);
  expect((await daemon.ask({ text: "find rust-4410", conversation: "elsewhere" })).reply).toMatch(
    new RegExp(`asked of an agent \\([^)]*task ${asked}\\): The shed's number is RUST-4410\\.`),
  );
});

test("no prompt of IO or of a squad's agent holds a name that only the code knows", { timeout: 60_000 }, async () => {
  await squadWith(daemon, project({ "README.md": "# A\n" }, atTheEnd), "named", ["Engineer"]);
  await ended(daemon, (await delegate(daemon, "named", { task: "Say a word." })).id, 60_000);
  expect(model.requests.some((request) => characterOf(request) !== undefined)).toBe(true);
  for (const request of model.requests) expect(ownNamesIn(textOf(request.messages[0]))).toEqual([]);
});
