import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Engine, SessionSpec } from "../../src/engine/port.ts";
import { createGenerations } from "../../src/engine/sessions/generations.ts";
import { sessionLog } from "../../src/engine/sessions/recover.ts";
import { estimateTokens } from "../../src/lib/estimate-tokens.ts";
import { turn } from "../support/engine.ts";
import { temporaryFolder } from "../support/home.ts";
import type { Script } from "../support/providers/act.ts";
import { startOpenAi } from "../support/providers/openai.ts";
import { engineOn, sessionSpec } from "../support/wires.ts";

const KEY = "sk-proj-right-key-for-the-tests-0000";
const SMALL = 4_096;
const LARGE = 32_768;
const CODE = /\b[A-Z]+-\d{4}\b/g;
const codesIn = (text: string) => [...new Set(text.match(CODE) ?? [])].sort();
const isSummary = (text: string) => /detailed summary of the conversation so far/.test(text);
const chat = (index: number) => `message ${index}: ${"alpha beta gamma delta ".repeat(40)}`;

/** Keeps the codes when it summarises, but never says one. */
const forgetful: Script = ({ lastUser }) => {
  if (!isSummary(lastUser)) return { say: "lorem ipsum dolor sit amet ".repeat(20) };
  const given = /\n\n(<.*)$/s.exec(lastUser)?.[1] ?? "";
  const most = Number(/in at most (\d+) words/.exec(lastUser)?.[1]);
  return { say: `${codesIn(given).join(" ")} ${given.replace(CODE, "it")}`.split(/\s+/).slice(0, most).join(" ") };
};

/** A conversation in a folder, over any number of engines, and the codes that its model was last shown. */
async function converse() {
  const provider = await startOpenAi({
    ...{ key: KEY, script: forgetful },
    models: { small: { window: SMALL, maxOutput: 512 }, large: { window: LARGE, maxOutput: 512 } },
  });
  const folder = temporaryFolder();
  const models = [
    { id: "small", contextWindow: SMALL },
    { id: "large", contextWindow: LARGE },
  ];
  let engine: Engine | undefined;
  let spec: SessionSpec = { ...sessionSpec("a", folder), model: "small" };
  const stop = async () => engine?.stop();
  onTestFinished(async () => void (await stop()));
  const restart = async (change: () => Partial<SessionSpec> = () => ({})) => {
    await stop();
    spec = { ...spec, ...change() };
    engine = await engineOn(folder, { baseUrl: provider.url, apiKey: KEY, model: "small", models });
  };
  await restart();
  return {
    folder,
    provider,
    restart,
    stop,
    spec: () => spec,
    async say(words: string): Promise<string[]> {
      expect(await engine!.session(spec).run(turn(words))).toMatchObject({ outcome: "done" });
      return codesIn(JSON.stringify(provider.asked.findLast(({ lastUser }) => !isSummary(lastUser))!.body));
    },
    async windows(count: number) {
      for (let said = 0; said < count * SMALL; said += 400) await this.say(chat(said));
    },
    log: () => sessionLog(folder, createGenerations(folder).current(spec.id).session),
  };
}

test("what was said once is known whatever began the next session: a full window, a damaged log, a lost one, other tools, another model", {
  timeout: 180_000,
}, async () => {
  const talk = await converse();
  await talk.say("My code is BLUE-7731.");
  await talk.windows(2);
  await talk.say("The shed's code is AMBER-2284.");
  expect(await talk.say("What do you know?")).toEqual(["AMBER-2284", "BLUE-7731"]);

  await talk.restart(() => {
    const log = talk.log();
    writeFileSync(log, readFileSync(log, "utf8").replace('"assistant.message"', '"assistant.mess'));
    return {};
  });
  expect(await talk.say("And after that?")).toEqual(["AMBER-2284", "BLUE-7731"]);
  await talk.windows(2);
  expect(await talk.say("And two windows later?")).toEqual(["AMBER-2284", "BLUE-7731"]);

  await talk.restart(() => {
    rmSync(dirname(talk.log()), { recursive: true });
    return { handover: () => "User: The gate's code is GREEN-5150." };
  });
  expect(await talk.say("And without a log?")).toEqual(["AMBER-2284", "BLUE-7731", "GREEN-5150"]);
  await talk.windows(2);

  await talk.restart(() => ({ id: "b", follows: () => "a" }));
  expect(await talk.say("And in another session?")).toEqual(["AMBER-2284", "BLUE-7731", "GREEN-5150"]);
  await talk.windows(2);

  await talk.restart(() => ({ model: "large" }));
  await talk.windows(4);
  await talk.restart(() => ({ model: "small" }));
  expect(await talk.say("And with another model?")).toEqual(["AMBER-2284", "BLUE-7731", "GREEN-5150"]);
  await talk.windows(1);
  expect(await talk.say("And at the end?")).toEqual(["AMBER-2284", "BLUE-7731", "GREEN-5150"]);
  const { summary, said } = createGenerations(talk.folder).current("b").handover;
  expect(estimateTokens(summary)).toBeLessThanOrEqual(SMALL / 4);
  expect(said.length).toBeLessThanOrEqual(36);
});

test("a session that takes over from a longer one than its window holds knows the middle of it in its first answer", {
  timeout: 60_000,
}, async () => {
  const talk = await converse();
  await talk.restart(() => ({ model: "large" }));
  await talk.windows(1);
  await talk.say(`${chat(0)} The code is BLUE-7731.`);
  await talk.windows(2);
  await talk.restart(() => ({ id: "b", follows: () => "a", model: "small" }));
  expect(await talk.say("What is the code?")).toEqual(["BLUE-7731"]);
  expect(Math.max(...talk.provider.asked.map(({ inputTokens }) => inputTokens))).toBeLessThanOrEqual(LARGE);
  expect(talk.provider.refusals()).toEqual([]);
});

test("a hand-over that an earlier version wrote is told, and part of the next summary", { timeout: 60_000 }, async () => {
  const talk = await converse();
  await talk.stop();
  const generations = join(talk.folder, "generations");
  createGenerations(talk.folder).next("a", { summary: "", said: [], latest: [] });
  writeFileSync(join(generations, "a.json"), JSON.stringify({ number: 3, handover: "The code is BLUE-7731." }));
  await talk.restart();
  expect(await talk.say("What is the code?")).toEqual(["BLUE-7731"]);
  await talk.windows(2);
  expect(await talk.say("And now?")).toEqual(["BLUE-7731"]);
});
