import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { asked, conflictScene, expectBothSides, type Life, live, runOf } from "../support/swarm/lives.ts";
import { drawn, isWhole, someOf } from "../support/sweep.ts";

/** The steps at which a run is always killed; of the other calls, checks and git steps a share is drawn. */
const ALWAYS = [/\/open$/, /\/commit\/1$/, /\/merge\/1$/, /\/conflict\/1$/, /\/tidy$/, /^implement\/result$/, /\/draft$/];

/** The steps at which this run of the test does not kill. */
async function leftOut(): Promise<string[]> {
  const { home, base } = await conflictScene();
  await live(base);
  const others = runOf(home)
    .steps.filter(({ kind, key }) => ["call", "checks", "git"].includes(kind) && !ALWAYS.some((each) => each.test(key)))
    .map(({ key }) => key)
    .sort();
  const some = new Set(someOf("before writing", others));
  return others.filter((key) => !some.has(key));
}

test(`a run that is killed each time a step's work is done and not yet written down repeats no work and ends in the same result (${drawn})`, async () => {
  const { home, project, model, base: scene } = await conflictScene();
  const killBefore = join(home, "killed-before.txt");
  const spared = isWhole ? [] : await leftOut();
  writeFileSync(killBefore, spared.map((key) => `${key}\n`).join(""));
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
  const killed = readFileSync(killBefore, "utf8").trim().split("\n").slice(spared.length);
  for (const kind of ALWAYS) expect([kind, killed.some((key) => kind.test(key))]).toEqual([kind, true]);
  expect(killed.some((key) => !ALWAYS.some((kind) => kind.test(key)))).toBe(true);
  const questions = asked(model.requests);
  expect(questions.length - new Set(questions).size).toBeLessThanOrEqual(inFlight.length);
  // The process may also be killed for a check that runs at the same time.
  const outsideStreams = inFlight.filter((stream) => stream === null).length;
  expect(questions.filter((each) => each.startsWith("pm:")).length).toBeLessThanOrEqual(1 + outsideStreams);
}, 300_000);
