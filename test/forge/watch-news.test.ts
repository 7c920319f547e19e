import { afterAll, beforeAll, expect, test } from "vitest";
import type { PullRequest } from "../../src/protocol/pulls.ts";
import type { Run } from "../../src/protocol/runs.ts";
import type { Watch } from "../../src/protocol/watches.ts";
import { type Loop, type Proposed, startLoop } from "../support/forge/loop.ts";
import { now, projectAt } from "../support/forge/watched.ts";
import { collectEndings } from "../support/home.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
let loop: Loop;
beforeAll(async () => {
  loop = await startLoop(atTheEnd);
}, 120_000);
afterAll(end);

/** A run that ended in a pull request, in a repository that nobody watches. */
async function proposed(name: string): Promise<Proposed> {
  const project = projectAt(loop.double, name, atTheEnd);
  const { id: run } = await loop.daemon().json<Run>("POST", "/api/runs", { projectPath: project, issue: "Greet", pull: {} });
  const pull = await until(
    "the pull request",
    async () => {
      const made = await loop.daemon().json<PullRequest>("GET", `/api/pulls/${run}`);
      return made.state === "open" && made;
    },
    120_000,
  );
  const head = () => loop.double.headOf(name, pull.branch!)!;
  return {
    ...{ name, project, run, watch: "" },
    repo: loop.double.repos[name]!,
    number: pull.number!,
    branch: pull.branch!,
    head,
  };
}

test("without a watch, too, people are told when a pull request is reviewed, red, in conflict, closed, opened again and merged", async () => {
  const pull = await proposed("acme/news");
  const { number } = pull;
  loop.comment(pull, "reader", "Nobody asked me");
  loop.comment(pull, "ted", "Louder, please");
  await loop.told(`acme/news#${number} was reviewed by ted`);
  loop.review(pull, "mona", "approved", "");
  await loop.told(`acme/news#${number} was approved by mona`);
  loop.failCheck(pull, "test (ubuntu)");
  await loop.told(`acme/news#${number} is red: test (ubuntu)`);

  const [row] = pull.repo.pulls;
  row!.mergeable = false;
  await loop.told(`acme/news#${number} cannot be merged: it conflicts with main`);
  Object.assign(row!, { state: "closed", at: now() });
  await loop.told(`acme/news#${number} was closed`);
  Object.assign(row!, { state: "open", at: now() });
  await loop.told(`acme/news#${number} was opened again`);
  Object.assign(row!, { state: "closed", mergedAt: now(), at: now() });
  await loop.told(`acme/news#${number} was merged`);
  expect(await loop.daemon().json<PullRequest>("GET", `/api/pulls/${pull.run}`)).toMatchObject({ state: "merged" });

  // Each piece of news is told once, nothing about strangers is told, and IO neither works nor posts there.
  const { of, leave } = await loop.daemon().follow({ lastEventId: "0" });
  await until("the merge", () => of("news.told").some(({ body }) => body.text === `acme/news#${number} was merged`), 60_000);
  const told = of("news.told").map(({ body }) => String(body.text));
  leave();
  expect(new Set(told).size).toBe(told.length);
  expect(told.join("\n")).not.toContain("reader");
  expect(loop.said(pull)).toEqual(["Nobody asked me", "Louder, please"]);
  expect(loop.double.faults).toEqual([]);
  // Once it is merged, the forge is no longer polled for it.
  const asked = () => loop.double.calls.filter(({ what }) => what.includes("/acme/news/")).length;
  const other = await loop.proposed("acme/other");
  const before = asked();
  await loop.looks(other.watch, 4);
  expect(asked()).toBe(before);
}, 300_000);

test("a watch for labels alone tells what becomes of its pull requests, and does not work on it", async () => {
  const pull = await loop.proposed("acme/labels", { reviews: false, checks: false });
  const head = pull.head();
  loop.comment(pull, "ted", "Louder, please");
  loop.failCheck(pull, "lint");
  await loop.told(`acme/labels#${pull.number} was reviewed by ted`);
  await loop.told(`acme/labels#${pull.number} is red: lint`);
  await loop.looks(pull.watch, 2);
  expect(pull.head()).toBe(head);
  expect(await loop.daemon().json<Watch>("GET", `/api/watches/${pull.watch}`)).toMatchObject({ problem: null });
  expect(loop.asked("Your work is proposed as pull request")).toBe(0);
}, 300_000);
