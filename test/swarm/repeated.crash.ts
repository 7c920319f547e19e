import { expect, test } from "vitest";
import { temporaryFolder } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { git, makeProject, play } from "../support/swarm/index.ts";
import { asked, type Life, live, runOf } from "../support/swarm/lives.ts";
import { TWICE, twice } from "../support/swarm/repeated.ts";
import { drawn, stepsUntilKill } from "../support/sweep.ts";

async function scene() {
  const home = temporaryFolder();
  const project = makeProject({ "swarm.config.yaml": `concurrency: 1\n${TWICE}` });
  const model = await scriptedModel(play(twice));
  return { home, project, model, base: { home, project, modelUrl: model.url, issue: "Do it twice" } };
}
const keysOf = (home: string) =>
  runOf(home)
    .steps.filter(({ kind }) => ["call", "checks", "git", "phase", "stream", "loop"].includes(kind))
    .map(({ key }) => key)
    .sort();

test(`a run with every kind of phase twice that is killed after every step ends in the same result and asks nothing twice (${drawn})`, async () => {
  const whole = await scene();
  const { outcome, tree } = JSON.parse((await live(whole.base)).said);
  expect(outcome).toBe("approved");

  const { home, project, model, base } = await scene();
  let resume: string | undefined;
  let last: Life | undefined;
  for (let lives = 0; lives < 100; lives += 1) {
    last = await live({ ...base, killOn: "step.finished", killAt: stepsUntilKill("repeated", lives), ...(resume && { resume }) });
    resume = runOf(home).row?.id;
    if (last.signal === null) break;
  }
  expect(JSON.parse(last!.said)).toMatchObject({ status: "done", outcome: "approved", tree });
  expect(git(project, "rev-parse", `swarm/${resume}^{tree}`)).toBe(tree);
  expect(keysOf(home)).toEqual(keysOf(whole.home));
  expect(asked(model.requests).sort()).toEqual(asked(whole.model.requests).sort());
}, 600_000);

test("killed while steps of the second phases are under way it goes on from there", async () => {
  const { home, base } = await scene();
  let resume: string | undefined;
  let last: Life | undefined;
  for (let lives = 0; lives < 40; lives += 1) {
    last = await live({ ...base, killOn: "step.started", killAt: 4, ...(resume && { resume }) });
    resume = runOf(home).row?.id;
    if (last.signal === null) break;
  }
  expect(JSON.parse(last!.said)).toMatchObject({ status: "done", outcome: "approved" });
}, 300_000);
