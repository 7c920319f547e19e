import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import type { Act } from "../../src/engine/rehearsal/wire.ts";
import type { TurnRequest } from "../../src/protocol/turns.ts";
import { startEngine, turn } from "../support/engine.ts";
import { temporaryFolder } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const TEXT = 20_000;
const ROUNDS = 13;
const SIDE_BY_SIDE = 4;
const TURNS_EACH = 4;

/** The size of the reachable heap in bytes, after garbage collection. */
async function reachable(): Promise<number> {
  for (let round = 0; round < 3; round += 1) {
    collect();
    await new Promise((next) => setImmediate(next));
  }
  return process.memoryUsage().heapUsed;
}

test("hundreds of turns with long texts leave nothing behind", { timeout: 180_000 }, async () => {
  const folder = temporaryFolder();
  const long = "a long answer ".repeat(TEXT / 14);
  const model = await scriptedModel((_, index): Act => ({ say: `${index} ${long}` }));
  const engine = await startEngine(folder, model.url);
  const requests: WeakRef<TurnRequest>[] = [];

  const converse = async (id: string) => {
    const session = engine.session({ id, systemMessage: () => "You are a test.", tools: [], workingDirectory: folder });
    for (let count = 0; count < TURNS_EACH; count += 1) {
      const request = turn(`${id} ${count} ${"a long question ".repeat(TEXT / 16)}`, { onEvent: () => undefined });
      requests.push(new WeakRef(request));
      expect((await session.run(request)).outcome).toBe("done");
    }
    await engine.deleteSession(id);
    model.requests.length = 0;
    model.bodies.length = 0;
  };

  const round = (name: string) => Promise.all(Array.from({ length: SIDE_BY_SIDE }, (_, index) => converse(`${name}-${index}`)));
  await round("warm");
  const before = await reachable();
  for (let count = 0; count < ROUNDS; count += 1) await round(`s${count}`);
  const grown = (await reachable()) - before;

  expect(requests.filter((request) => request.deref() !== undefined).length).toBeLessThanOrEqual(SIDE_BY_SIDE);
  expect(grown).toBeLessThan(2_000_000);
});
