import { expect, test } from "vitest";
import { createWatchTurns } from "../../src/forge/watch-turns.ts";
import { openStore } from "../../src/store/open.ts";
import { createWatchRows } from "../../src/store/watches.ts";
import { quietLog } from "../support/engine.ts";

test("a forge that asked for patience is asked for nothing before it is time, whatever ends meanwhile and after a restart", async () => {
  const store = openStore(":memory:");
  const rows = createWatchRows(store);
  const place = { projectPath: "/p", squad: null, forge: "github" as const, host: "forge.example", repo: "acme/a" };
  const wanted = { label: "io", mention: null, reviews: true, checks: true, maxRounds: 3 };
  rows.insert({ id: "w_1", ...place, ...wanted });
  const steps: string[] = [];
  const unused = () => {
    throw new Error("nothing is to be asked of the forge");
  };
  const turns = createWatchTurns({
    rows,
    finder: { placeOf: async () => place, open: async () => ({ forge: {} }) } as never,
    pulls: { saw: unused },
    pullRows: { knownAt: unused },
    issueWork: {} as never,
    rounds: { step: async () => void steps.push("asked") } as never,
    tell: unused,
    pollMs: () => 1_000,
    clean: (text) => text,
    log: quietLog,
  });
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
  rows.change("w_1", { problem: "forge.example takes no more requests", nextAt: inAnHour });
  await turns.take("w_1");
  expect(steps).toEqual([]);
  rows.change("w_1", { problem: null, nextAt: inAnHour });
  await turns.take("w_1");
  expect(steps).toEqual(["asked"]);
  store.close();
});
