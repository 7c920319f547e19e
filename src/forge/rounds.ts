import type { Git } from "../git/command.ts";
import { openRepo } from "../git/repository.ts";
import { UserError } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import { oneLine } from "../lib/quoted.ts";
import { isSettled } from "../protocol/pulls.ts";
import type { PullRow, PullRows } from "../store/pulls.ts";
import type { RoundRow, TriggerRow, WatchRow, WatchRows } from "../store/watches.ts";
import { isPassing } from "./client.ts";
import { isOfCommit } from "./failed-checks.ts";
import type { Check, Forge, ThreadComment } from "./port.ts";
import type { Pulls } from "./pulls.ts";
import * as texts from "./round-text.ts";
import { ifTaken, sayIfTaken, unlessDone } from "./say-once.ts";
import { markOf } from "./text.ts";

/**
 * The result of a round in a run: the engineer's reply, the commit in one of its projects if there is one, or why the result
 * was refused.
 */
export type RoundResult = { reply: string; commit: string | null; refused: string | null };

export interface RoundsDeps {
  rows: WatchRows;
  pulls: Pick<Pulls, "request">;
  pullRows: Pick<PullRows, "find" | "knownAt">;
  git: Git;
  clean: (text: string) => string;
  /** Continues an ended run on its branch. */
  reopen: (run: string, round: { number: number; title: string; prompt: string; keepsTests: boolean }) => Promise<void>;
  /** The status or result of a run's round, for one of its projects. */
  resultOf: (run: string, round: number, part: number) => RoundResult | "not begun" | "under way";
  tell: (news: WatchNews) => void;
}

/** A notification to people, sent once per key. */
export interface WatchNews {
  text: string;
  key: string;
  isUrgent: boolean;
}

const LOG_TAIL = 8_000;
const LINES_AROUND = 5;
const OPEN: readonly RoundRow["state"][] = ["working", "publishing", "answering"];

/** Starts a round for a pull request that has waiting triggers. */
function createRoundOpener(deps: RoundsDeps) {
  const { rows, tell } = deps;

  async function begin(watch: WatchRow, forge: Forge, pull: PullRow): Promise<void> {
    const known = rows.ofNumber(watch, pull.number ?? 0).filter(isPullWork);
    const earlier = rows.roundsOf(pull.owner.id);
    if (pull.state !== "open" || earlier.some(({ state }) => OPEN.includes(state))) return;
    const there = known.filter((each) => isOfCommit(each, pull));
    for (const each of known)
      if (["held", "waiting"].includes(each.state) && !there.includes(each))
        rows.move(each.id, { state: "ignored", reason: "a newer commit was pushed before IO came to it" });
    const waiting = there.filter(({ state }) => state === "waiting");
    if (waiting.length === 0) return;
    const leave = (state: TriggerRow["state"], reason: string) => {
      for (const { id } of waiting) rows.move(id, { state, reason });
    };
    if (pull.owner.kind === "task") return leave("ignored", "the pull request of a task is left to its squad");
    const { state, head } = await forge.pull(pull.number ?? 0);
    if (state !== "open") return leave("ignored", `the pull request is ${state}`);
    if (head.commit !== pull.commit)
      return leave("ignored", `somebody else pushed ${head.commit.slice(0, 12)} to the branch, so IO leaves it to them`);
    const counted = earlier.filter((each) => each.state !== "asked");
    if (counted.length >= watch.maxRounds) {
      await sayIfTaken(forge, pull.number ?? 0, `gave-up-${pull.id}`, texts.gaveUpText(pull, counted));
      tell({ text: `IO gave up on ${nameOf(pull)} after ${counted.length} rounds`, key: `gave-up:${pull.id}`, isUrgent: true });
      return leave("given up", `${counted.length} rounds were worked on it, and no more are allowed`);
    }
    const triggers = await stillThere(forge, pull, [
      ...there.filter(({ state: is }) => is === "asked" || is === "held"),
      ...waiting,
    ]);
    if (!triggers.some((each) => each.state === "waiting")) return;
    const prompt = texts.roundPrompt(pull, await concerns(deps, forge, pull, triggers));
    const round = { id: newId("o"), watch: watch.id, pull: pull.id, run: pull.owner.id };
    rows.transaction(() => {
      // Meanwhile another watch may have started a round for another repository of the same run.
      const now = rows.roundsOf(round.run);
      if (now.some(({ state }) => OPEN.includes(state))) return;
      rows.beginRound({ ...round, count: now.length + 1, prompt, red: triggers.some(({ kind }) => kind === "check") });
      for (const { id } of triggers) rows.move(id, { state: "working", run: round.run, round: round.id, reason: null });
    });
  }

  /** The triggers whose comments nobody has deleted since. */
  async function stillThere(forge: Forge, pull: PullRow, triggers: readonly TriggerRow[]): Promise<TriggerRow[]> {
    const number = pull.number ?? 0;
    const [reviews, threads, comments] = await Promise.all([
      forge.reviews(number),
      forge.threads(number),
      forge.comments(number),
    ]);
    const lists: Partial<Record<TriggerRow["kind"], readonly { id: string }[]>> = {
      review: reviews,
      thread: threads,
      comment: comments,
    };
    return triggers.filter(({ id, kind, externalId }) => {
      const isThere = lists[kind]?.some((each) => each.id === externalId) ?? true;
      if (!isThere) rows.move(id, { state: "ignored", reason: "it was deleted before IO came to it" });
      return isThere;
    });
  }

  return begin;
}

/**
 * Works on pull requests again: people's comments and failed checks become one round of the run that made the pull request.
 * Each step is recorded before it runs and first checks what already exists, so it can safely be repeated after a crash.
 */
export function createRounds(deps: RoundsDeps) {
  const { rows, pulls, pullRows, reopen, resultOf, tell } = deps;
  const begin = createRoundOpener(deps);

  const end = (round: RoundRow, state: "done" | "failed" | "asked", triggers: TriggerRow["state"], reason: string | null) =>
    rows.transaction(() => {
      for (const { id } of concernsOf(round)) rows.move(id, { state: triggers, reason });
      rows.moveRound(round.id, state, reason);
    });
  const concernsOf = ({ id, run }: RoundRow) => rows.ofRun(run).filter((each) => each.round === id);

  /** Takes the next step of a round. */
  async function advance(forge: Forge, round: RoundRow): Promise<void> {
    const pull = pullRows.find(round.pull);
    if (!pull) return end(round, "failed", "failed", "its pull request is gone");
    const result = resultOf(round.run, round.count, pull.part);
    if (result === "under way") return;
    if (result === "not begun") {
      const title = round.red ? "Mend the failed checks" : "Answer the review";
      await reopen(round.run, { number: round.count, title, prompt: round.prompt, keepsTests: round.red });
      return;
    }
    if (round.state === "working") return judge(forge, pull, round, result);
    if (round.state === "publishing") return publish(forge, pull, round, result);
    await answer(forge, pull, round, result);
  }

  async function judge(forge: Forge, pull: PullRow, round: RoundRow, result: RoundResult): Promise<void> {
    const { disagreement } = texts.readAnswers(result.reply);
    const triggers = concernsOf(round);
    const [one, other] = [disagreement?.one, disagreement?.other].map((name) => triggers[Number(name?.slice(1)) - 1]);
    if (result.refused !== null) return refuse(forge, pull, round, result.refused);
    if (disagreement && one && other && result.commit === null) {
      await sayIfTaken(
        forge,
        pull.number ?? 0,
        `asked-${round.id}`,
        texts.disagreementText(round, [one, other], disagreement.text),
      );
      tell({
        text: `${nameOf(pull)}: ${one.by} and ${other.by} disagree, and IO waits for their decision`,
        ...{ key: `asked:${round.id}`, isUrgent: true },
      });
      return end(round, "asked", "asked", `${one.by} and ${other.by} disagree; IO asked what it is to be`);
    }
    if (result.commit === null) rows.moveRound(round.id, "answering");
    else {
      pulls.request(pull.owner, {});
      rows.moveRound(round.id, "publishing");
    }
    const now = rows.roundsOf(round.run).find(({ id }) => id === round.id);
    if (now) await advance(forge, now);
  }

  async function publish(forge: Forge, pull: PullRow, round: RoundRow, result: RoundResult): Promise<void> {
    if (!isSettled(pull.state)) return;
    if (pull.state === "open" && pull.commit === result.commit && pull.reason === null) {
      rows.moveRound(round.id, "answering");
      return advance(forge, { ...round, state: "answering" });
    }
    await refuse(forge, pull, round, pull.reason ?? `the pull request is ${pull.state}`);
  }

  async function refuse(forge: Forge, pull: PullRow, round: RoundRow, reason: string): Promise<void> {
    const unsaid = await sayIfTaken(forge, pull.number ?? 0, `refused-${round.id}`, texts.refusalText(round, deps.clean(reason)));
    end(round, "failed", "failed", oneLine([reason, unsaid].filter(Boolean).join("; "), 1_000));
  }

  /** Answers each thread with the commit or with why there is none, and everything else in one comment below. */
  async function answer(forge: Forge, pull: PullRow, round: RoundRow, { reply, commit }: RoundResult): Promise<void> {
    const number = pull.number ?? 0;
    const { each } = texts.readAnswers(reply);
    const answers = concernsOf(round).map((trigger, index) => ({
      trigger,
      text: deps.clean(texts.answerText(each.get(texts.nameOf(index)), commit)),
    }));
    const inThreads = answers.filter((one) => one.trigger.kind === "thread");
    const threads = inThreads.length > 0 ? await forge.threads(number) : [];
    const unsaid: (string | undefined)[] = [];
    for (const { trigger, text } of inThreads) {
      const thread = threads.find(({ id }) => id === trigger.externalId);
      if (thread) unsaid.push(await replyOnce(forge, number, { threads, thread, trigger, text }));
    }
    const below = answers.filter((one) => one.trigger.kind !== "thread");
    if (below.length > 0) unsaid.push(await sayIfTaken(forge, number, `round-${round.id}`, texts.roundAnswer(round, below)));
    const done = commit === null ? "nothing was changed" : `done in ${commit.slice(0, 12)}`;
    end(round, "done", "done", [done, ...new Set(unsaid.filter(Boolean))].join("; "));
  }

  /** Takes one step for one pull request. If it fails for good, the other pull requests still get their turn. */
  async function apart(work: () => Promise<void>, failed: (reason: string) => void): Promise<void> {
    try {
      await work();
    } catch (error) {
      // Temporary failures are retried at the next turn.
      if (isPassing(error) || !(error instanceof UserError)) throw error;
      failed(oneLine(deps.clean(error.message), 1_000));
    }
  }

  return {
    /** Starts rounds that are waiting, and continues those under way. */
    async step(watch: WatchRow, forge: Forge): Promise<void> {
      for (const pull of pullRows.knownAt(watch.host, watch.repo)) {
        const leave = (reason: string) => {
          for (const { id, kind, state } of rows.ofNumber(watch, pull.number ?? 0))
            if (isPullWork({ kind }) && state === "waiting") rows.move(id, { state: "failed", reason });
        };
        await apart(() => begin(watch, forge, pull), leave);
      }
      for (const round of rows.openRounds(watch.id))
        await apart(
          () => advance(forge, round),
          (reason) => end(round, "failed", "failed", reason),
        );
    },
  };
}
export type Rounds = ReturnType<typeof createRounds>;

/** Replies in a thread, unless that was already done. Returns why the forge does not accept the reply, if it does not. */
async function replyOnce(
  forge: Forge,
  number: number,
  {
    threads,
    thread,
    trigger,
    text,
  }: { threads: readonly ThreadComment[]; thread: ThreadComment; trigger: TriggerRow; text: string },
): Promise<string | undefined> {
  const mark = markOf(texts.answerMark(trigger));
  const isIn = (all: readonly ThreadComment[]) => all.some(({ body }) => body.trimEnd().endsWith(mark));
  if (isIn(threads)) return undefined;
  const send = () => forge.reply(number, thread, texts.threadAnswer(trigger, text));
  return ifTaken(() => unlessDone(send, async () => isIn(await forge.threads(number))));
}

export const isPullWork = ({ kind }: Pick<TriggerRow, "kind">): boolean => kind !== "label" && kind !== "mention";
export const nameOf = ({ repo, number }: PullRow): string => `${repo}#${number}`;

/** Adds to each concern the lines that it refers to, or the end of the check's log. */
async function concerns(
  { git, clean }: RoundsDeps,
  forge: Forge,
  { commit, projectPath }: PullRow,
  triggers: readonly TriggerRow[],
): Promise<texts.Concern[]> {
  const needsChecks = triggers.some(({ kind }) => kind === "check") && commit !== null;
  const checks = needsChecks ? await forge.checks(commit) : [];
  return Promise.all(
    triggers.map(async (trigger) => {
      const check = trigger.kind === "check" ? checks.find(({ id }) => id === trigger.externalId) : undefined;
      const shown = check ? await logOf(forge, check) : await linesAt(git, { projectPath, commit }, trigger);
      return { trigger, shown: clean(shown) };
    }),
  );
}

async function logOf(forge: Forge, check: Check): Promise<string> {
  const log = await forge.log(check).catch(() => check.summary);
  return `The end of its log:\n${log.slice(-LOG_TAIL)}`;
}

/** The lines of the file around a comment. */
async function linesAt(
  git: Git,
  { projectPath, commit }: { projectPath: string; commit: string | null },
  { detail: { path, line } }: TriggerRow,
): Promise<string> {
  if (path === undefined || line == null || commit === null) return "";
  const repo = await openRepo(git, projectPath);
  const shown = await repo?.git.run(repo.root, ["cat-file", "blob", `${commit}:${path}`], { maxOutput: 2_000_000 });
  if (shown?.code !== 0) return "";
  const lines = shown.stdout.split("\n");
  const from = Math.max(0, line - 1 - LINES_AROUND);
  const around = lines.slice(from, line + LINES_AROUND).map((text, index) => `${from + index + 1}: ${text.slice(0, 500)}`);
  return `The lines there:\n${around.join("\n")}`;
}
