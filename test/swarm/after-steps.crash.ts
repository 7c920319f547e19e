import { expect, test } from "vitest";
import { git } from "../support/swarm/index.ts";
import { asked, type Life, live, runOf, scene } from "../support/swarm/lives.ts";
import { drawn, isWhole, stepsUntilKill } from "../support/sweep.ts";

test(`a run with two streams that is killed after every step ends in the same result, and no finished call is made again (${drawn})`, async () => {
  const whole = await scene();
  const undisturbed = await live(whole.base);
  expect(undisturbed.code).toBe(0);
  const { outcome, tree, steps } = JSON.parse(undisturbed.said);
  expect(outcome).toBe("approved");
  const { steps: finished } = runOf(whole.home);
  const expectedSteps = finished
    .filter(({ kind }) => ["call", "checks", "git"].includes(kind))
    .map(({ key }) => key)
    .sort();
  const total = expectedSteps.length;
  expect(total).toBeGreaterThan(15);
  expect(steps).toBe(0);

  const { home, project, model, base } = await scene();
  let resume: string | undefined;
  let lives = 0;
  const inFlight: (number | null)[] = [];
  let last: Life | undefined;
  for (; lives < total * 2; lives += 1) {
    last = await live({
      ...base,
      killOn: "step.finished",
      killAt: stepsUntilKill("after steps", lives),
      ...(resume && { resume }),
    });
    const { row, steps: left } = runOf(home);
    inFlight.push(...left.filter(({ kind, state }) => kind === "call" && state === "begun").map(({ stream }) => stream));
    resume = row?.id;
    if (last.signal === null) break;
    expect(last.signal).toBe("SIGKILL");
  }
  expect(last?.code).toBe(0);
  expect(JSON.parse(last!.said)).toMatchObject({ status: "done", outcome: "approved", tree });
  expect(git(project, "rev-parse", `swarm/${resume}^{tree}`)).toBe(tree);
  expect(lives).toBeGreaterThanOrEqual(Math.floor(total / (isWhole ? 2 : 8)));
  const { steps: rows } = runOf(home);
  expect(
    rows
      .filter(({ kind }) => ["call", "checks", "git"].includes(kind))
      .map(({ key }) => key)
      .sort(),
  ).toEqual(expectedSteps);

  const once = asked(whole.model.requests);
  const again = asked(model.requests);
  expect(new Set(again)).toEqual(new Set(once));
  // When a step of another stream or a check ends and the process is killed, a call may be in flight: only such calls are
  // repeated.
  const repeats = (lines: string[]) => lines.length - new Set(lines).size;
  const outsideStreams = (lines: string[]) => lines.filter((each) => !/^(engineer|eng-code-reviewer|tester)/.test(each));
  expect(again.length - once.length).toBeLessThanOrEqual(inFlight.length);
  expect(repeats(outsideStreams(again)) - repeats(outsideStreams(once))).toBeLessThanOrEqual(
    inFlight.filter((stream) => stream === null).length,
  );
}, 600_000);
