import { expect, onTestFinished, test } from "vitest";
import { createEngine } from "../../src/engine/engine.ts";
import { chooseEngine } from "../../src/engine/models/ladder.ts";
import { startModelServer } from "../../src/engine/rehearsal/server.ts";
import type { Act } from "../../src/engine/rehearsal/wire.ts";
import { Config } from "../../src/home/config.ts";
import { createLog } from "../../src/lib/log.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { turn } from "../support/engine.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { soon } from "../support/soon.ts";

const LIMITS = { turnSilenceMs: 4_000, turnCapMs: 20_000 };

test("a provider that fails twice and then answers is no failure", async () => {
  const model = await scriptedModel((_request, index) => (index < 2 ? { status: 500 } : { say: "third time lucky" }));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  expect(await daemon.ask({ text: "hello" })).toMatchObject({ status: "done", reply: "third time lucky" });
});

const cases: { name: string; act: Act; code: string; says: RegExp }[] = [
  { name: "a key that is not accepted", act: { status: 401 }, code: "unauthorized", says: /credentials.*key/s },
  {
    name: "a rate limit with a long wait",
    act: { status: 429, headers: { "retry-after": "120" } },
    code: "rate_limited",
    says: /rate/,
  },
  { name: "an answer that stops in the middle", act: { stall: "I was" }, code: "timed_out", says: /silent/ },
  { name: "an empty answer", act: { empty: true }, code: "no_answer", says: /no answer/ },
  {
    name: "a request the provider does not like",
    act: { status: 400, message: "too many tools" },
    code: "bad_request",
    says: /too many tools/,
  },
];

test.each(cases)("$name is a readable failure within the deadline, and the next message works", async ({ act, code, says }) => {
  const model = await scriptedModel((request) => (lastUserText(request).includes("trouble") ? act : { say: "all is well" }));
  const daemon = await startDaemonProcess(temporaryHome(LIMITS), providerEnvironment(model.url));
  const started = performance.now();
  const failed = await daemon.ask({ text: "trouble" });
  expect(performance.now() - started).toBeLessThan(soon(15_000));
  expect(failed).toMatchObject({ status: "failed", error: { code } });
  expect(failed.error?.message).toMatch(says);
  expect(failed.partial).toBe("stall" in act);
  expect(failed.reply).toBe("stall" in act ? "I was" : null);
  expect(JSON.stringify(failed)).not.toContain("scripted-key");
  model.play(() => ({ say: "all is well" }));
  expect(await daemon.ask({ text: "and now?" })).toMatchObject({ status: "done", reply: "all is well" });
});

test("an endpoint that is not there is a readable failure, and the next message works once it is", async () => {
  const gone = await startModelServer(() => ({ say: "never" }));
  const port = Number(new URL(gone.url).port);
  await gone.close();
  const daemon = await startDaemonProcess(temporaryHome(LIMITS), providerEnvironment(gone.url));
  expect(await daemon.ask({ text: "anybody?" })).toMatchObject({ status: "failed", error: { code: "unreachable" } });
  const back = await startModelServer(() => ({ say: "here again" }), { port });
  onTestFinished(() => back.close());
  expect(await daemon.ask({ text: "and now?" })).toMatchObject({ status: "done", reply: "here again" });
});

test("a fault of IO's own is told as one, and the log knows what it was", async () => {
  const folder = temporaryFolder();
  const lines: string[] = [];
  const config = Config.parse({});
  const engine = await createEngine({
    folder,
    config: () => config,
    env: { PATH: process.env.PATH, HOME: folder, COPILOT_CLI_PATH: process.env.COPILOT_CLI_PATH },
    choice: await chooseEngine(config, { IO_ENGINE: "rehearsal" }),
    rehearsal: () => {
      throw new TypeError(`something at ${folder} was not there`);
    },
    log: createLog({ redactor: createRedactor(), echo: (line) => lines.push(line) }),
  });
  await engine.start();
  onTestFinished(() => engine.stop());
  const result = await engine
    .session({ id: "s", systemMessage: () => "", tools: [], workingDirectory: folder })
    .run(turn("hello"));
  expect(result).toMatchObject({ outcome: "failed", error: { code: "internal" } });
  expect(result.error!.message).toMatch(/^IO itself made a mistake here\. Try again; `io logs` shows what it was\.$/);
  expect(lines.join("\n")).toContain("was not there");
});
