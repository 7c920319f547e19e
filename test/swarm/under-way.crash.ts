import { expect, test } from "vitest";
import { type Life, live, runOf, scene } from "../support/swarm/lives.ts";

test("a run that is killed while steps are under way goes on from there", async () => {
  const { home, base } = await scene();
  let resume: string | undefined;
  let last: Life | undefined;
  for (let lives = 0; lives < 20; lives += 1) {
    last = await live({ ...base, killOn: "step.started", killAt: 5, ...(resume && { resume }) });
    resume = runOf(home).row?.id;
    if (last.signal === null) break;
  }
  expect(JSON.parse(last!.said)).toMatchObject({ status: "done", outcome: "approved" });
}, 300_000);
