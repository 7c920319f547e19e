import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { GREET_TEST, type Loop, type Proposed, startLoop } from "../support/forge/loop.ts";
import { collectEndings } from "../support/home.ts";
import { sh } from "../support/swarm/index.ts";

const WORKFLOW = "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make test\n";
const { atTheEnd, end } = collectEndings();
let loop: Loop;
let pull: Proposed;
beforeAll(async () => {
  loop = await startLoop(atTheEnd);
  const files = { "spec/greet.test.ts": GREET_TEST, ".github/workflows/ci.yml": WORKFLOW };
  pull = await loop.proposed("acme/weak", { maxRounds: 20 }, files);
}, 300_000);
afterAll(end);
afterEach(() => expect(loop.double.faults).toEqual([]));

const pushes = () => loop.double.changes().filter((what) => what === "POST git-receive-pack").length;

test.each([
  ["deletes a failing test", "rm spec/greet.test.ts", "spec/greet.test.ts: a file with tests was deleted"],
  ["marks it as skipped", "sed -i 's/test(/test.skip(/' spec/greet.test.ts", "spec/greet.test.ts: 1 test is skipped"],
  ["loosens what it asserts", `sed -i 's/toBe("hello")/toBeTruthy()/' spec/greet.test.ts`, "spec/greet.test.ts: "],
  ["edits the workflow", "sed -i 's/make test/true/' .github/workflows/ci.yml", ".github/workflows/ci.yml: "],
])(
  "after a red check, an engineer that %s is not pushed as green",
  async (name, command, found) => {
    const before = { head: pull.head(), pushes: pushes() };
    // Each attempt repeats it, together with another change.
    loop.setEngineer(({ afterTool, prompt }) =>
      afterTool ? { say: "C1: done - all green" } : sh(`${command}; echo ${prompt.length} ${before.pushes} > x.txt`),
    );
    loop.failCheck(pull, `check of one that ${name}`);
    const isOver = (state: string) => state === "failed" || state === "done";
    const seen = new Set<string>();
    const { state, reason } = await loop.become(
      pull.watch,
      "the end",
      (each) => each.kind === "check" && isOver(each.state) && !known.has(each.id) && Boolean(seen.add(each.id)),
    );
    for (const id of seen) known.add(id);
    expect(state).toBe("failed");
    expect(reason).toContain("it weakens tests or CI: ");
    expect(reason).toContain(found);
    expect({ head: pull.head(), pushes: pushes() }).toEqual(before);
    expect(loop.said(pull).at(-1)).toContain("pushed nothing");
    expect(loop.asked("Put all of that back exactly as it was")).toBeGreaterThan(0);
  },
  300_000,
);
const known = new Set<string>();

test("what a reviewer asked for may change a test, and the pull request names that before anything else", async () => {
  const head = pull.head();
  loop.setEngineer(({ afterTool }) =>
    afterTool ? { say: "C1: done - skipped" } : sh("sed -i 's/test(/test.skip(/' spec/greet.test.ts"),
  );
  loop.thread(pull, "ted", "Skip this test for now", "spec/greet.test.ts");
  await loop.become(pull.watch, "the round", ({ kind, state }) => kind === "thread" && state === "done");
  expect(pull.head()).not.toBe(head);
  expect(pull.repo.pulls[0]!.body).toMatch(/^## Look here first\n[^#]*`spec\/greet\.test\.ts`: `1 test is skipped/);
}, 300_000);
