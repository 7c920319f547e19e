import { expect, test } from "vitest";
import { ForgeError } from "../../src/forge/client.ts";
import { createIssueWork } from "../../src/forge/issue-work.ts";
import { lookAtRepository, newMemory } from "../../src/forge/look.ts";
import type { Comment, Forge, Issue } from "../../src/forge/port.ts";
import { openStore } from "../../src/store/open.ts";
import { createPullRows } from "../../src/store/pulls.ts";
import { createWatchRows } from "../../src/store/watches.ts";

const LABELLED: Issue = {
  ...{ number: 1, title: "Greet", body: "Say hello", author: "stranger", isOpen: true, isPull: false, labels: ["io"] },
  updatedAt: "2026-01-02T03:04:05Z",
};

/** A forge in memory with one labelled issue. */
function startForge(by = "mona") {
  const there = { issue: LABELLED, gone: false, comments: [] as Comment[], by };
  const say = (author: string, body: string) => {
    const at = LABELLED.updatedAt;
    there.comments.push({ id: String(there.comments.length), author, body, url: "", createdAt: at, updatedAt: at });
  };
  const forge = (login: string) => ({
    changedSince: async () => [LABELLED],
    labelings: async () => [{ id: "7", label: "io", by: there.by, at: "t" }],
    permissionOf: async (name: string) => (name === "stranger" ? "read" : "write"),
    async issue() {
      if (there.gone) throw new ForgeError("missing", "it is gone");
      return there.issue;
    },
    comments: async () => [...there.comments],
    comment: async (_number: number, body: string) => say(login, body),
  });
  return { there, say, forge };
}

/** One IO that watches the forge's repository for a label. */
function startIo(forge: ReturnType<ReturnType<typeof startForge>["forge"]>, id = "w_1") {
  const store = openStore(":memory:");
  const [pullRows, rows] = [createPullRows(store), createWatchRows(store)];
  rows.insert({
    ...{ id, host: "forge.test", repo: "acme/a", projectPath: "/a", squad: null, forge: "github" },
    ...{ label: "io", mention: null, reviews: false, checks: false, maxRounds: 3 },
  });
  const watch = rows.find(id)!;
  const runs = new Map<string, { isOver: boolean; end: string }>();
  const issues: string[] = [];
  const work = createIssueWork({
    ...{ rows, pullRows, newRun: () => `r_${id}` },
    pulls: { plan: async () => undefined, forget: () => undefined },
    findRun: (run) => runs.get(run),
    freshBase: async () => "abc",
    startRun: async ({ id: run, issue }) => {
      issues.push(issue);
      runs.set(run, { isOver: false, end: "nothing was changed" });
    },
  });
  return {
    ...{ rows, runs, issues, forge },
    async look(): Promise<void> {
      await lookAtRepository({
        ...{ watch, forge: forge as unknown as Forge, memory: newMemory(), pulls: [] },
        see: (trigger) => void rows.see(watch, trigger),
        ...{ onPull: () => undefined, onWord: () => undefined, onChecks: () => undefined },
      });
    },
    trigger: () => rows.latest(id, 1)[0]!,
    async step() {
      const { state, reason, run } = await work.step(watch, forge as unknown as Forge, rows.latest(id, 1)[0]!);
      return { state, reason, run };
    },
  };
}

test("an issue is worked on for whoever set its label last, if they may write", async () => {
  const { forge } = startForge("stranger");
  const ignored = startIo(forge("io"));
  await ignored.look();
  expect(ignored.trigger()).toMatchObject({ state: "ignored", by: "stranger", reason: "stranger has no right to write here" });
  const heard = startIo(startForge("mona").forge("io"));
  await heard.look();
  await heard.look();
  expect(heard.rows.latest("w_1", 9)).toMatchObject([{ state: "waiting", by: "mona" }]);
});

test("each step from the label to the run is done once, whatever is lost between them", async () => {
  const { there, forge } = startForge();
  const io = startIo(forge("io"));
  await io.look();
  expect(await io.step()).toMatchObject({ state: "claiming", run: "r_w_1" });
  // The comment arrives, and its answer is lost.
  const { comment } = io.forge;
  io.forge.comment = async (number, body) => {
    await comment(number, body);
    throw new ForgeError("uncertain", "no answer");
  };
  expect(await io.step()).toMatchObject({ state: "starting" });
  // Killed after the run began and before that was written down.
  const { id } = io.trigger();
  expect(await io.step()).toMatchObject({ state: "working" });
  io.rows.move(id, { state: "starting" });
  expect(await io.step()).toMatchObject({ state: "working" });
  io.rows.move(id, { state: "claiming" });
  expect(await io.step()).toMatchObject({ state: "starting" });
  expect(io.issues).toHaveLength(1);
  expect(there.comments.filter(({ body }) => body.includes("IO works on this"))).toHaveLength(1);
});

test("of two that watch one repository the first to say so works, and a stranger's word counts for nothing", async () => {
  const { there, say, forge } = startForge();
  const [first, second] = [startIo(forge("io"), "w_1"), startIo(forge("other"), "w_2")];
  say("stranger", "x\n\n<!-- io: claim-label-7-w_9 -->");
  for (const io of [first, second]) {
    await io.look();
    await io.step();
  }
  expect(await second.step()).toMatchObject({ state: "starting" });
  expect(await first.step()).toMatchObject({
    ...{ state: "elsewhere", run: null },
    reason: "another IO works on it: it said so first, as other",
  });
  expect(there.comments).toHaveLength(3);
});

test("an issue that is gone, moved, closed or without its label by now is left alone with the reason", async () => {
  for (const [change, reason] of [
    [{ gone: true }, "the issue is gone"],
    [{ issue: { ...LABELLED, number: 9 } }, "the issue was moved to another repository"],
    [{ issue: { ...LABELLED, isOpen: false } }, "the issue was closed before IO came to it"],
    [{ issue: { ...LABELLED, labels: [] } }, "the label was taken off before IO came to it"],
  ] as const) {
    const { there, forge } = startForge();
    const io = startIo(forge("io"));
    await io.look();
    Object.assign(there, change);
    expect(await io.step()).toEqual({ state: "ignored", reason, run: null });
    expect(there.comments).toEqual([]);
  }
});

test("that nothing came of an issue is said there once, and where nobody may write it is kept with the reason", async () => {
  const { there, forge } = startForge();
  const io = startIo(forge("io"));
  await io.look();
  for (let time = 0; time < 3; time += 1) await io.step();
  expect(await io.step()).toMatchObject({ state: "working" });
  io.runs.set("r_w_1", { isOver: true, end: "nothing was changed" });
  const { id } = io.trigger();
  for (let time = 0; time < 2; time += 1) {
    expect(await io.step()).toMatchObject({ state: "failed", reason: "nothing was changed" });
    io.rows.move(id, { state: "working" });
  }
  expect(there.comments.filter(({ body }) => body.includes("IO gives this up"))).toHaveLength(1);
  there.comments = [];
  io.forge.comment = () => Promise.reject(new ForgeError("forbidden", "the issue is locked"));
  expect(await io.step()).toMatchObject({
    state: "failed",
    reason: "nothing was changed; it could not be said there: the issue is locked",
  });
});
