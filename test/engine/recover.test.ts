import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import type { SessionSpec } from "../../src/engine/port.ts";
import { pidFileOf } from "../../src/engine/runtime/leftovers.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { openStore } from "../../src/store/open.ts";
import { createGate } from "../../src/tools/gate.ts";
import { tool } from "../../src/tools/tool.ts";
import { quietLog, startEngine, turn } from "../support/engine.ts";
import { temporaryFolder } from "../support/home.ts";
import { isAfterTool, scriptedModel } from "../support/model.ts";
import { until } from "../support/until.ts";

const bare = (id: string, folder: string): SessionSpec => ({
  id,
  systemMessage: () => "You are a test.",
  tools: [],
  workingDirectory: folder,
});

test("an answer that was given before the crash is delivered without asking the model again", async () => {
  const folder = temporaryFolder();
  const model = await scriptedModel(() => ({ say: "only once" }));
  const first = await startEngine(folder, model.url);
  let promptId: string | undefined;
  await first.session(bare("s1", folder)).run(turn("hello", { onAccepted: (id) => (promptId = id) }));
  await first.stop();

  const second = await startEngine(folder, model.url);
  const result = await second.session(bare("s1", folder)).run(turn("hello", { attempt: 2, interrupted: { promptId } }));
  expect(result).toMatchObject({ outcome: "done", text: "only once" });
  expect(model.requests).toHaveLength(1);
});

test("the same words sent again after a finished turn are a new question, not the old one", async () => {
  const folder = temporaryFolder();
  const model = await scriptedModel((_request, index) => ({ say: `answer ${index}` }));
  const engine = await startEngine(folder, model.url);
  let previousPromptId: string | undefined;
  await engine.session(bare("s1", folder)).run(turn("go on", { onAccepted: (id) => (previousPromptId = id) }));
  const result = await engine.session(bare("s1", folder)).run(turn("go on", { interrupted: { previousPromptId } }));
  expect(result.text).toBe("answer 1");
});

test.each(["in the middle of the effect", "right after the effect"])(
  "an effect is not done twice when the runtime is killed %s",
  async (moment) => {
    const folder = temporaryFolder();
    const ledger = join(folder, "ledger");
    const store = openStore(join(folder, "io.db"));
    const pidFile = pidFileOf(folder, process.pid);
    const killRuntime = () => process.kill(Number(readFileSync(pidFile, "utf8")), "SIGKILL");
    const pay = tool({
      name: "pay",
      description: "Pays once.",
      schema: z.object({ amount: z.number() }),
      kind: "effect",
      deadlineMs: 10_000,
      run: async ({ amount }) => {
        appendFileSync(ledger, `${amount}\n`);
        if (moment === "in the middle of the effect") {
          killRuntime();
          await until("the runtime to be restarted", () => engine.status().state === "ready");
        } else {
          setTimeout(killRuntime, 20);
        }
        return `paid ${amount}`;
      },
    });
    const gate = createGate({ store, redactor: createRedactor(), log: quietLog, policy: () => undefined });
    const model = await scriptedModel((request) =>
      isAfterTool(request) ? { say: "it is paid", delayMs: 200 } : { call: [{ tool: "pay", args: { amount: 7 } }] },
    );
    const engine = await startEngine(folder, model.url);
    const session = engine.session({ ...bare("s1", folder), tools: gate.bind([pay], { cwd: folder, actor: "test" }) });
    const result = await session.run(turn("pay 7"));
    expect(result).toMatchObject({ outcome: "done", text: "it is paid" });
    expect(readFileSync(ledger, "utf8")).toBe("7\n");
    expect(existsSync(pidFile)).toBe(true);
    store.close();
  },
);

test("a turn survives the runtime dying twice", async () => {
  const folder = temporaryFolder();
  const model = await scriptedModel((_request, index) => (index < 2 ? { stall: "…" } : { say: "at last" }));
  const engine = await startEngine(folder, model.url);
  let deaths = 0;
  const result = await engine.session(bare("s1", folder)).run(
    turn("hello", {
      onEvent: (event) => {
        if (event.kind === "delta" && deaths < 2) {
          deaths += 1;
          process.kill(Number(readFileSync(pidFileOf(folder, process.pid), "utf8")), "SIGKILL");
        }
      },
    }),
  );
  expect(deaths).toBe(2);
  expect(result).toMatchObject({ outcome: "done", text: "at last" });
});
