import { spawn } from "node:child_process";

import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/paths.ts";
import { openStore } from "../../src/store/open.ts";
import { openRuns } from "../../src/store/runs.ts";
import { temporaryFolder } from "../support/home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../support/model.ts";
import { git, makeProject, play, roleOf, task } from "./support.ts";

const TWO = JSON.stringify([task("T1", "First"), task("T2", "Second")]);

interface Life {
  code: number | null;
  signal: NodeJS.Signals | null;
  said: string;
}

function live(options: object): Promise<Life> {
  return new Promise((done) => {
    const child = spawn(
      process.execPath,
      ["--import", "tsx", join(packageRoot, "test", "swarm", "child.ts"), JSON.stringify(options)],
      { cwd: packageRoot, stdio: ["ignore", "pipe", "inherit"] },
    );
    let said = "";
    child.stdout.on("data", (chunk) => {
      said += chunk;
    });
    child.once("close", (code, signal) => done({ code, signal, said }));
  });
}

function runOf(home: string) {
  const store = openStore(join(home, "io.db"));
  const runs = openRuns(store);
  const [row] = runs.list(1);
  const steps = row ? runs.steps(row.id) : [];
  store.close();
  return { row, steps };
}

async function scene() {
  const home = temporaryFolder();
  const project = makeProject();
  const model = await scriptedModel(
    play(({ role, prompt, before }) => {
      if (role === "pm" && prompt.includes("Reply with a JSON array")) return { say: TWO };
      if (role === "eng-spec-reviewer" && before === 0) return { say: "1. Say more." };
      return undefined;
    }),
  );
  return { home, project, model, base: { home, project, modelUrl: model.url, issue: "Do two things" } };
}

/** What the model was asked, one line a question, in no order. */
const asked = (requests: Parameters<typeof roleOf>[0][]) =>
  requests
    .filter((request) => !isAfterTool(request))
    .map(
      (request) =>
        `${roleOf(request)}: ${lastUserText(request)
          .replace(/<current_datetime>.*?<\/current_datetime>/s, "")
          .trim()}`,
    );

test("a run with two streams that is killed after every single step ends in the same result, and no finished call is made again", async () => {
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
  let last: Life | undefined;
  for (; lives < total * 2; lives += 1) {
    last = await live({ ...base, killOn: "step.finished", killAt: 1, ...(resume && { resume }) });
    const { row } = runOf(home);
    resume = row?.id;
    if (last.signal === null) break;
    expect(last.signal).toBe("SIGKILL");
  }
  expect(last?.code).toBe(0);
  expect(JSON.parse(last!.said)).toMatchObject({ status: "done", outcome: "approved", tree });
  expect(git(project, "rev-parse", `swarm/${resume}^{tree}`)).toBe(tree);
  expect(lives).toBeGreaterThanOrEqual(Math.floor(total / 2));
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
  // A call of one stream may be in flight when a step of the other ends and the process dies; only such a call is asked again.
  const inFlight = again.length - once.length;
  expect(inFlight).toBeLessThanOrEqual(lives);
  for (const line of once.filter((each) => !/^(engineer|eng-code-reviewer|tester)/.test(each))) {
    expect(again.filter((each) => each === line)).toHaveLength(1);
  }
}, 600_000);
