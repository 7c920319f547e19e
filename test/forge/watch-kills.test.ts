import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { PullRequest } from "../../src/protocol/pulls.ts";
import type { Watch } from "../../src/protocol/watches.ts";
import { type Loop, startLoop } from "../support/forge/loop.ts";
import type { ForgeRepo } from "../support/forge/state.ts";
import { openIssue, projectAt, setLabel } from "../support/forge/watched.ts";
import { collectEndings } from "../support/home.ts";

const { atTheEnd, end } = collectEndings();
let loop: Loop;
let repo: ForgeRepo;
let watch: string;

beforeAll(async () => {
  loop = await startLoop(atTheEnd, {
    script: ({ role, request }) =>
      role === "engineer" && JSON.stringify(request.messages).includes("Leave all as it is")
        ? { say: "Nothing to do." }
        : undefined,
  });
  const project = projectAt(loop.double, "acme/killed", atTheEnd);
  repo = loop.double.repos["acme/killed"]!;
  const { id } = await loop.daemon().json<Watch>("POST", "/api/watches", { project, label: "io" });
  watch = id;
}, 120_000);
afterAll(end);
afterEach(() => expect(loop.double.faults).toEqual([]));

const COMMENT = /^POST .*\/issues\/\d+\/comments$/;
const CHANGING = [
  { name: "that it works on an issue", what: COMMENT, nth: 1, title: "Greet people" },
  { name: "the branch of an issue's run", what: /^POST git-receive-pack$/, nth: 1, title: "Greet more people" },
  { name: "the pull request of an issue's run", what: /^POST .*\/pulls$/, nth: 1, title: "Greet everybody" },
  { name: "that nothing came of an issue", what: COMMENT, nth: 2, title: "Leave all as it is" },
];
const KILLS = CHANGING.flatMap((each) => (["before", "after"] as const).map((moment) => ({ ...each, moment })));

test.each(KILLS)(
  "a daemon killed $moment the forge has taken $name does it exactly once",
  async ({ what, nth, title, moment }) => {
    const before = { changes: loop.double.changes().length, pulls: repo.pulls.length };
    const issue = openIssue(repo, title);
    await loop.killedAt(what, moment, { nth, act: () => setLabel(repo, issue, "mona") });
    const isOver = (state: string) => ["done", "failed", "ignored"].includes(state);
    const { state, run, reason } = await loop.become(watch, "the end", (each) => each.number === issue && isOver(each.state));
    const isNothing = title.startsWith("Leave");
    expect({ state, reason }).toMatchObject({ state: isNothing ? "failed" : "done" });
    const said = loop.said({ repo, number: issue });
    expect(said.filter((body) => body.includes("IO works on this"))).toHaveLength(1);
    expect(said.filter((body) => body.includes("IO gives this up"))).toHaveLength(isNothing ? 1 : 0);
    expect(repo.pulls.length - before.pulls).toBe(isNothing ? 0 : 1);
    if (!isNothing) {
      const { branch } = await loop.daemon().json<PullRequest>("GET", `/api/pulls/${run}`);
      expect(repo.pulls.at(-1)).toMatchObject({ head: branch });
    }
    // A request that was lost before the forge accepted it is sent again; an accepted one is not.
    const sent = loop.double
      .changes()
      .slice(before.changes)
      .filter((each) => what.test(each));
    const wanted = what === COMMENT && isNothing ? 2 : 1;
    expect(sent).toHaveLength(wanted + (moment === "before" ? 1 : 0));
  },
  300_000,
);
