import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { type ChatRequest, type Model, textOf } from "../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { breakLine, sessionLogs } from "../support/session-logs.ts";
import { until } from "../support/until.ts";

const MESSAGES = 4;
const STEPS = 3;
/** A message is given up after five attempts. */
const KILLS = 3;

/** Numbers between 0 and 1, the same for the same seed. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/**
 * Adds one line to a file for each step of a message, and counts only the results after the last prompt. If an outcome is
 * unknown, it checks first, as a careful model would.
 */
function careful(folder: string): Model {
  return (request: ChatRequest) => {
    const at = request.messages.findLastIndex(
      ({ role, content }) => role === "user" && JSON.stringify(content).includes("mark "),
    );
    const name = /mark (\w+)/.exec(textOf(request.messages[at]))![1]!;
    const results = request.messages.slice(at + 1).filter(({ role }) => role === "tool");
    const last = textOf(results.at(-1));
    const steps = results.filter((result) => !/is unknown/.test(textOf(result))).length;
    const run = (step: number, command: string) => ({
      delayMs: 40,
      call: [{ tool: "shell", args: { command: command.replaceAll("FILE", join(folder, `${name}-${step}`)) } }],
    });
    if (/is unknown/.test(last)) return run(steps, "test -s FILE || echo ran >> FILE");
    return steps < STEPS ? run(steps, "echo ran >> FILE") : { say: "all marked", delayMs: 40 };
  };
}

test.each([11, 12])(
  "whatever is killed and whichever line of a log is broken, each effect is there once (seed %i)",
  {
    timeout: 240_000,
  },
  async (seed) => {
    const random = numbers(seed);
    const folder = temporaryFolder();
    const home = temporaryHome();
    const model = await scriptedModel(careful(folder));
    const start = () => startDaemonProcess(home, providerEnvironment(model.url));
    let daemon: TestDaemon = await start();
    const ids: string[] = [];
    for (let index = 0; index < MESSAGES; index += 1) {
      const message = { text: `mark s${seed}x${index}`, conversation: `c${index % 2}` };
      ids.push((await daemon.json<{ id: string }>("POST", "/api/messages", message)).id);
    }
    for (let kill = 0; kill < KILLS; kill += 1) {
      const asked = model.requests.length;
      await until("the model to be asked", () => model.requests.length > asked, 30_000);
      await sleep(random() * 400);
      if (random() < 0.25) process.kill(daemon.runtimePid(), "SIGKILL");
      await daemon.kill("SIGKILL");
      for (const log of sessionLogs(home)) {
        const lines = readFileSync(log, "utf8").split("\n").length;
        if (random() < 0.7) breakLine(log, Math.floor(random() * lines));
      }
      daemon = await start();
    }
    for (const id of ids) {
      const message = await until(
        `message ${id} to be finished`,
        async () => {
          const found = await daemon.json<Message>("GET", `/api/messages/${id}`);
          return found.finishedAt === null ? undefined : found;
        },
        60_000,
      );
      expect(message).toMatchObject({ status: "done", reply: "all marked" });
    }
    const marks = Array.from({ length: MESSAGES }, (_, index) =>
      Array.from({ length: STEPS }, (_step, step) => join(folder, `s${seed}x${index}-${step}`)),
    ).flat();
    const lines = marks.map((file) => (existsSync(file) ? readFileSync(file, "utf8") : ""));
    expect(lines).toEqual(marks.map(() => "ran\n"));
  },
);
