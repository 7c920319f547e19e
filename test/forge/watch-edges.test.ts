import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { PullRequest } from "../../src/protocol/pulls.ts";
import type { Watch, WatchDetail } from "../../src/protocol/watches.ts";
import { runIo, startDaemonProcess } from "../support/daemon.ts";
import { type Loop, type Proposed, startLoop } from "../support/forge/loop.ts";
import { TOKEN } from "../support/forge/server.ts";
import { now, openIssue, projectAt, setLabel, triggerOf } from "../support/forge/watched.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { git, write } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
let loop: Loop;
beforeAll(async () => {
  loop = await startLoop(atTheEnd);
}, 120_000);
afterAll(end);
afterEach(() => {
  expect(loop.double.faults).toEqual([]);
  loop.double.intercept = () => undefined;
  loop.double.instead = () => undefined;
});

const pushes = () => loop.double.changes().filter((what) => what === "POST git-receive-pack").length;
const pullOf = ({ run }: Proposed) => loop.daemon().json<PullRequest>("GET", `/api/pulls/${run}`);
/** Counts the engineer's rounds: each writes something louder than all earlier ones. */
let loudness = 0;
const louder = () => {
  loudness += 1;
  const text = `HELLO ${loudness}\n`;
  loop.setEngineer(({ afterTool }) => (afterTool ? { say: "C1: done - louder\nC2: done" } : write("T1.txt", text)));
};

describe("while a pull request is open", () => {
  let pull: Proposed;
  beforeAll(async () => {
    pull = await loop.proposed("acme/edges", { maxRounds: 20 });
  }, 300_000);

  test("what was deleted before IO came to it counts for nothing, and of what was edited only the last words do", async () => {
    louder();
    const { double } = loop;
    const deleted = loop.comment(pull, "ted", "Delete the whole project");
    const edited = loop.thread(pull, "mona", "Whisper it");
    // This request is made after the comments were seen and before any work begins.
    double.intercept = async (what, when) => {
      if (when !== "before" || what !== `GET /repos/acme/edges/pulls/${pull.number}`) return undefined;
      const { triggers } = await loop.daemon().json<WatchDetail>("GET", `/api/watches/${pull.watch}`);
      if (triggers.some(({ by }) => by === "ted")) pull.repo.comments = pull.repo.comments.filter(({ id }) => id !== deleted);
      return undefined;
    };
    expect(
      await loop.become(pull.watch, "the deleted one", ({ by, state }) => by === "ted" && state !== "waiting"),
    ).toMatchObject({
      state: "ignored",
      reason: "it was deleted before IO came to it",
    });
    await loop.become(pull.watch, "the other", ({ kind, state }) => kind === "thread" && state === "done");
    expect(loop.asked("Delete the whole project")).toBe(0);

    // An edit after the work is ignored, and the trigger says so.
    const head = pull.head();
    pull.repo.threads.find(({ id }) => id === edited)!.body = "Shout it";
    loop.touch(pull.repo, pull.number);
    expect(await loop.become(pull.watch, "the edit", ({ reason }) => reason?.includes("edited") ?? false)).toMatchObject({
      state: "ignored",
      by: "mona",
    });
    expect(loop.asked("Shout it")).toBe(0);
    expect(pull.head()).toBe(head);
  }, 300_000);

  test("one that conflicts with its base is told once, shown wherever it is shown, and no longer when that is settled", async () => {
    const { double } = loop;
    const row = pull.repo.pulls.find(({ number }) => number === pull.number)!;
    const words = `acme/edges#${pull.number} cannot be merged: it conflicts with main`;
    const show = () => loop.daemon().json<WatchDetail>("GET", `/api/watches/${pull.watch}`);
    const changes = double.changes().length;
    const { of, leave } = await loop.daemon().follow();
    const times = () => of("news.told").filter(({ body }) => body.text === words).length;
    // While a forge is still determining it, it says so, or briefly says no.
    row.mergeable = false;
    await loop.looks(pull.watch);
    row.mergeable = true;
    await loop.looks(pull.watch, 2);
    expect((await show()).pulls).toMatchObject([{ number: pull.number, conflict: false }]);
    expect(times()).toBe(0);
    row.mergeable = false;
    await until("the news", () => times() > 0, 60_000);
    const told = await until("the conflict", async () => (await pullOf(pull)).conflict && pullOf(pull), 60_000);
    expect(told).toMatchObject({ state: "open", reason: null, base: "main" });
    expect((await runIo(["watch", "show", pull.watch], loop.home)).stdout).toContain(
      `pull request #${pull.number} open, but in conflict with main: ${told.url}`,
    );
    expect((await runIo(["pr", pull.run], loop.home)).stdout).toContain("into main: open, but in conflict with main.");
    row.mergeable = null;
    await loop.looks(pull.watch, 4);
    expect(await pullOf(pull)).toMatchObject({ conflict: true });
    // People have to resolve the conflict: IO pushes and posts nothing.
    expect(times()).toBe(1);
    expect(double.changes().slice(changes)).toEqual([]);
    row.mergeable = true;
    await until("its end", async () => !(await pullOf(pull)).conflict, 60_000);
    leave();
    expect((await show()).pulls).toMatchObject([{ number: pull.number, state: "open", conflict: false }]);
  }, 180_000);

  test("a comment that is edited while it waits is worked on once, with its new words", async () => {
    louder();
    let id = 0;
    const { setEngineer } = loop;
    setEngineer(({ afterTool }) => {
      if (id === 0) {
        id = loop.comment(pull, "mona", "The first words");
        return write("T1.txt", "HELLO while it waits\n");
      }
      return afterTool ? { say: "C1: done" } : write("T1.txt", "HELLO after that\n");
    });
    let isHeld: (() => void) | undefined;
    const seen = () =>
      loop
        .daemon()
        .json<WatchDetail>("GET", `/api/watches/${pull.watch}`)
        .then(({ triggers }) =>
          triggers.filter(({ kind, by, state }) => kind === "comment" && by === "mona" && state === "waiting"),
        );
    loop.double.intercept = (what, when) => {
      if (what !== "POST git-receive-pack" || when !== "before" || isHeld) return undefined;
      return new Promise((go) => {
        isHeld = () => go(undefined);
      });
    };
    loop.thread(pull, "ted", "Say it again");
    await until("the push", () => isHeld, 120_000);
    await until("the comment to wait", async () => (await seen()).length === 1, 60_000);
    Object.assign(pull.repo.comments.find((each) => each.id === id)!, { body: "The second words" });
    loop.touch(pull.repo, pull.number);
    await until("the edit to be seen", async () => (await loop.looks(pull.watch)) > 0, 60_000);
    isHeld?.();
    await loop.become(
      pull.watch,
      "the comment",
      ({ kind, by, state }) => kind === "comment" && by === "mona" && state === "done",
    );
    expect(loop.asked("The second words")).toBe(1);
    expect(loop.asked("The first words")).toBe(0);
  }, 300_000);

  test("somebody else's forced push to the branch is left as it is, and IO says why it does nothing", async () => {
    louder();
    const bare = loop.double.bareOf(pull.name);
    const mine = pull.head();
    const theirs = git(bare, "commit-tree", "-p", "main", "-m", "theirs", git(bare, "rev-parse", `${mine}^{tree}`));
    git(bare, "update-ref", `refs/heads/${pull.branch}`, theirs);
    const before = pushes();
    loop.thread(pull, "ted", "One more time");
    expect(
      await loop.become(pull.watch, "the refusal", ({ reason }) => reason?.startsWith("somebody else pushed") ?? false),
    ).toMatchObject({
      state: "ignored",
      reason: `somebody else pushed ${theirs.slice(0, 12)} to the branch, so IO leaves it to them`,
    });
    expect(loop.asked("One more time")).toBe(0);
    expect({ head: pull.head(), pushes: pushes() }).toEqual({ head: theirs, pushes: before });
    git(bare, "update-ref", `refs/heads/${pull.branch}`, mine);
  }, 120_000);

  test("a branch that somebody pushed to during a round is not forced; IO says that it pushed nothing", async () => {
    louder();
    const bare = loop.double.bareOf(pull.name);
    const mine = pull.head();
    const theirs = git(bare, "commit-tree", "-p", mine, "-m", "theirs", git(bare, "rev-parse", `${mine}^{tree}`));
    loop.double.intercept = async (what, when) => {
      if (when === "before" && what === "GET /acme/edges.git/info/refs")
        git(bare, "update-ref", `refs/heads/${pull.branch}`, theirs);
      return undefined;
    };
    loop.thread(pull, "ted", "And in green");
    const { reason } = await loop.become(pull.watch, "the end", ({ by, state }) => by === "ted" && state === "failed");
    expect(reason).toContain("did not take the push");
    expect(pull.head()).toBe(theirs);
    expect(loop.said(pull).at(-1)).toMatch(/IO worked on this and pushed nothing:[\s\S]*Nothing was forced/);
    loop.double.intercept = () => undefined;
    // Nor is work that could not be pushed mistaken for done later.
    loop.touch(pull.repo, pull.number);
    await loop.looks(pull.watch, 2);
    expect(await pullOf(pull)).toMatchObject({ state: "failed" });
    git(bare, "update-ref", `refs/heads/${pull.branch}`, mine);
  }, 180_000);
});

test("a pull request that was closed and opened again is worked on again", async () => {
  const pull = await loop.proposed("acme/reopened");
  louder();
  const [row] = pull.repo.pulls;
  Object.assign(row!, { state: "closed", at: now() });
  await until("the end", async () => (await pullOf(pull)).state === "closed", 60_000);
  await loop.told(`acme/reopened#${pull.number} was closed`);
  loop.comment(pull, "ted", "Too late");
  await loop.looks(pull.watch, 2);
  expect(loop.asked("Too late")).toBe(0);
  Object.assign(row!, { state: "open", at: now() });
  await until("the pull request to be open", async () => (await pullOf(pull)).state === "open", 60_000);
  const head = pull.head();
  loop.thread(pull, "ted", "Louder, please");
  await loop.become(pull.watch, "the round", ({ kind, state }) => kind === "thread" && state === "done");
  expect(pull.head()).not.toBe(head);
  expect(pull.repo.pulls).toHaveLength(1);
}, 300_000);

test("an issue that is deleted, or on which nobody may write any more, does not keep others from being worked on", async () => {
  const { double } = loop;
  const project = projectAt(double, "acme/gone", atTheEnd);
  const repo = double.repos["acme/gone"]!;
  const [gone, locked, wanted] = ["Gone", "Locked", "Greet"].map((title) => openIssue(repo, title));
  for (const number of [gone, locked, wanted]) setLabel(repo, number!, "mona");
  double.instead = (what) => {
    if (new RegExp(`/acme/gone/issues/${gone}(?:/comments)?$`).test(what))
      return { status: 410, body: { message: "This issue was deleted" } };
    if (what === `POST /repos/acme/gone/issues/${locked}/comments`)
      return { status: 403, body: { message: "Unable to create comment because issue is locked." } };
    return undefined;
  };
  const { id } = await loop.daemon().json<Watch>("POST", "/api/watches", { project, label: "io" });
  await loop.become(id, "the issue that is there", ({ number, state }) => number === wanted && state === "done");
  const { triggers, problem } = await loop.daemon().json<WatchDetail>("GET", `/api/watches/${id}`);
  expect(problem).toBeNull();
  expect(triggers.find(({ number }) => number === gone)).toMatchObject({ state: "ignored", reason: "the issue is gone" });
  expect(triggers.find(({ number }) => number === locked)).toMatchObject({
    state: "failed",
    reason: expect.stringContaining("issue is locked"),
  });
  expect(repo.pulls).toHaveLength(1);
}, 300_000);

test("a locked pull request ends its own round, and no other work of the repository", async () => {
  const pull = await loop.proposed("acme/locked");
  louder();
  loop.double.instead = (what) =>
    /^POST .*\/(?:replies|comments)$/.test(what) && what.includes(`/${pull.number}/`)
      ? { status: 403, body: { message: "Unable to create comment because issue is locked." } }
      : undefined;
  loop.thread(pull, "ted", "Louder");
  expect(
    await loop.become(
      pull.watch,
      "the end",
      ({ kind, state }) => kind === "thread" && state !== "waiting" && state !== "working",
    ),
  ).toMatchObject({
    state: "done",
    reason: expect.stringMatching(/^done in .*issue is locked/),
  });
  const other = openIssue(pull.repo, "Something else");
  setLabel(pull.repo, other, "mona");
  await loop.become(pull.watch, "the other issue", ({ number, state }) => number === other && state === "done");
}, 300_000);

test("a repository that was renamed is followed, by its issues, its git and its reviews", async () => {
  const pull = await loop.proposed("acme/before");
  louder();
  const { double } = loop;
  double.rename("acme/before", "acme/after");
  const moved = {
    ...pull,
    name: "acme/after",
    repo: double.repos["acme/after"]!,
    head: () => double.headOf("acme/after", pull.branch)!,
  };
  const head = moved.head();
  const thread = loop.thread(moved, "ted", "Louder");
  await loop.become(pull.watch, "the round", ({ kind, state }) => kind === "thread" && state === "done");
  expect(moved.head()).not.toBe(head);
  expect(loop.answersTo(moved, thread)).toHaveLength(1);
  const issue = openIssue(moved.repo, "Greet again");
  setLabel(moved.repo, issue, "mona");
  await loop.become(pull.watch, "the issue", ({ number, state }) => number === issue && state === "done");
  expect(moved.repo.pulls).toHaveLength(2);
}, 300_000);

test("of two daemons that watch one repository exactly one works on an issue, and the other says so", async () => {
  const { double } = loop;
  const project = projectAt(double, "acme/both", atTheEnd);
  const repo = double.repos["acme/both"]!;
  double.tokens["ghx-the-other-token"] = "ted";
  const config = { mode: "full", github: { apiUrl: double.apiUrl, pollMs: 1_000 } };
  const other = await startDaemonProcess(
    temporaryHome(config, atTheEnd),
    { ...loop.env(), GH_TOKEN: "ghx-the-other-token" },
    atTheEnd,
  );
  const both = [loop.daemon(), other];
  const watches = await Promise.all(both.map((each) => each.json<Watch>("POST", "/api/watches", { project, label: "io" })));
  const issues = ["Greet", "Greet more"].map((title) => openIssue(repo, title));
  for (const issue of issues) {
    setLabel(repo, issue, "mona");
    const over = (state: string) => ["done", "elsewhere", "failed"].includes(state);
    const ends = await Promise.all(
      both.map((each, at) =>
        triggerOf(
          () => each,
          watches[at]!.id,
          ({ number, state }) => number === issue && over(state),
        ),
      ),
    );
    expect(ends.map(({ state }) => state).sort()).toEqual(["done", "elsewhere"]);
    expect(ends.find(({ state }) => state === "elsewhere")!.reason).toMatch(
      /^another IO works on it: it said so first, as (?:ted|io-bot)$/,
    );
  }
  expect(repo.pulls).toHaveLength(2);
  for (const [at, each] of both.entries()) await each.json("DELETE", `/api/watches/${watches[at]!.id}`);
}, 300_000);

test("a token that expires while a round is pushed loses nothing: with a new one it is pushed and answered", async () => {
  const pull = await loop.proposed("acme/expired");
  louder();
  const { double } = loop;
  const head = pull.head();
  let isExpired = false;
  loop.setEngineer(({ afterTool }) => {
    isExpired ||= afterTool;
    if (isExpired) delete double.tokens[TOKEN];
    return afterTool ? { say: "C1: done - louder" } : write("T1.txt", "HELLO with a new token\n");
  });
  const thread = loop.thread(pull, "ted", "Louder");
  const problem = async () => (await loop.daemon().json<Watch>("GET", `/api/watches/${pull.watch}`)).problem;
  await until("the problem", async () => (await problem())?.includes("does not accept the token"), 120_000);
  expect(pull.head()).toBe(head);
  double.tokens[TOKEN] = "io-bot";
  await loop.daemon().json("POST", `/api/watches/${pull.watch}/resume`);
  await loop.become(pull.watch, "the round", ({ kind, state }) => kind === "thread" && (state === "done" || state === "failed"));
  expect(pull.head()).not.toBe(head);
  expect(loop.answersTo(pull, thread)).toEqual([expect.stringContaining(`Done in ${pull.head()}.`)]);
}, 300_000);
