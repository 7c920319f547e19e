import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { asked, conflictScene, expectBothSides, type Life, live, runOf } from "../support/swarm/lives.ts";

test("a run that is killed each time a step's work is done and not yet written down repeats no work and ends in the same result", async () => {
  const { home, project, model, base: scene } = await conflictScene();
  const killBefore = join(home, "killed-before.txt");
  writeFileSync(killBefore, "");
  const base = { ...scene, killBefore };
  let resume: string | undefined;
  const inFlight: (number | null)[] = [];
  let last: Life | undefined;
  for (let lives = 0; lives < 80; lives += 1) {
    last = await live({ ...base, ...(resume && { resume }) });
    const { row, steps } = runOf(home);
    resume = row?.id;
    if (last.signal === null) break;
    const answered = readFileSync(killBefore, "utf8").trim().split("\n").at(-1);
    const cutOff = steps.filter(({ kind, state, key }) => kind === "call" && state === "begun" && key !== answered);
    inFlight.push(...cutOff.map(({ stream }) => stream));
  }
  expect(JSON.parse(last!.said)).toMatchObject({ status: "done", outcome: "approved", reason: null });
  expectBothSides(project, resume!);
  const killed = readFileSync(killBefore, "utf8").trim().split("\n");
  for (const kind of [/\/open$/, /\/commit\/1$/, /\/merge\/1$/, /\/conflict\/1$/, /\/tidy$/, /^implement\/result$/, /\/draft$/])
    expect(killed.some((key) => kind.test(key))).toBe(true);
  const questions = asked(model.requests);
  expect(questions.length - new Set(questions).size).toBeLessThanOrEqual(inFlight.length);
  // The process may also be killed for a check that runs at the same time.
  const outsideStreams = inFlight.filter((stream) => stream === null).length;
  expect(questions.filter((each) => each.startsWith("pm:")).length).toBeLessThanOrEqual(1 + outsideStreams);
}, 300_000);
