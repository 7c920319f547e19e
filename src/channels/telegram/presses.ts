import type { Api } from "grammy";
import type { CallbackQuery } from "grammy/types";
import type { Pulls } from "../../forge/pulls.ts";
import { UserError } from "../../lib/errors.ts";
import { approvalKey, reminderKey } from "../../orchestrator/approval-news.ts";
import type { Approval } from "../../protocol/approvals.ts";
import type { Task } from "../../protocol/squads.ts";
import type { Squads } from "../../squads/squads.ts";
import type { Approvals } from "../../tools/approvals/approvals.ts";
import { calling } from "./bot.ts";
import { type Press, pressOf } from "./buttons.ts";
import { pieceOf } from "./format/answer.ts";
import { cutIntoPieces } from "./format/pieces.ts";
import type { Run } from "./format/runs.ts";
import { questionContent } from "./questions.ts";
import type { ReviewList } from "./reviews.ts";
import type { Teller } from "./teller.ts";
import type { Topics } from "./topics.ts";
import { troubleOf } from "./trouble.ts";

export interface PressesDeps {
  api: Api;
  approvals: Pick<Approvals, "decide" | "find">;
  squads: Pick<Squads, "cancel" | "task">;
  teller: Teller;
  topics: Pick<Topics, "placeOf">;
  reviewList: ReviewList;
  pulls: Pick<Pulls, "request">;
}

/** The most characters of a Telegram alert. */
const MAX_ALERT = 200;

/** The buttons below messages. */
export function createPresses({ api, approvals, squads, teller, topics, reviewList, pulls }: PressesDeps) {
  async function answer({ id }: CallbackQuery, text: string, alert: boolean): Promise<void> {
    const short = text.length <= MAX_ALERT ? text : `${text.slice(0, MAX_ALERT - 1)}…`;
    try {
      await calling("answerCallbackQuery", () => api.answerCallbackQuery(id, { text: short, show_alert: alert }));
    } catch (error) {
      // Telegram accepts an answer only for seconds; the press itself was handled.
      if (troubleOf(error)?.kind !== "refused") throw error;
    }
  }

  async function decide(press: Extract<Press, { approval: string }>, query: CallbackQuery): Promise<void> {
    if (press.does === "explain") {
      const { rule, reason } = approvals.find(press.approval);
      const words = [rule && `Asked because of ${rule}.`, reason && `The model's words: "${reason}"`].filter(Boolean).join(" ");
      return answer(query, words || "No rule allows it.", true);
    }
    const decided = approvals.decide(press.approval, { decision: press.does, scope: "once" }, `telegram:${query.from.id}`);
    await answer(query, `${decided.id} is ${decided.state}.`, false);
    await renew(decided);
  }

  /** Updates the question everywhere, without buttons once it is decided. */
  async function renew(approval: Approval): Promise<void> {
    for (const key of [approvalKey(approval.id), reminderKey(approval.id)]) {
      const place = teller.placeOf(key);
      if (place) await teller.show(key, place, questionContent(approval));
    }
  }

  async function ofTask(press: Extract<Press, { task: string }>, query: CallbackQuery, key: string): Promise<void> {
    if (press.does === "cancel") {
      const { id, status } = await squads.cancel(press.task);
      return answer(query, `${id} is ${status}.`, false);
    }
    await answer(query, "", false);
    const { message } = query;
    if (!message) return;
    const pieces = cutIntoPieces(evidenceRuns(squads.task(press.task))).map(pieceOf);
    await teller.show(key, topics.placeOf(message), { pieces, silent: true });
  }

  /** The result arrives as a message of its own: a question, the pull request, or the reason for failure. */
  async function propose({ work }: Extract<Press, { work: string }>, query: CallbackQuery): Promise<void> {
    const pull = pulls.request({ kind: work.startsWith("t_") ? "task" : "run", id: work }, {});
    await answer(
      query,
      pull.url === null ? `The pull request of ${work} is being made.` : `It is brought up to date: ${pull.url}`,
      false,
    );
  }

  async function ofReview(press: Extract<Press, { review: string }>, query: CallbackQuery, key: string): Promise<void> {
    if (press.does !== "change") {
      await answer(query, await reviewList.decide(press.review, press.does), false);
      return reviewList.renew();
    }
    const runs = reviewList.howToChange(press.review);
    await answer(query, "", false);
    if (query.message)
      await teller.show(key, topics.placeOf(query.message), { pieces: cutIntoPieces(runs).map(pieceOf), silent: true });
  }

  return {
    renew,
    async press(query: CallbackQuery, key: string): Promise<void> {
      const press = pressOf(query.data ?? "");
      if (!press) return answer(query, "This button does nothing any more.", true);
      try {
        await ("approval" in press
          ? decide(press, query)
          : "work" in press
            ? propose(press, query)
            : "review" in press
              ? ofReview(press, query, key)
              : ofTask(press, query, key));
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        await answer(query, error.message, true);
        if ("review" in press) await reviewList.renew();
        if ("approval" in press && error.trouble === "conflict") await renew(approvals.find(press.approval));
      }
    },
  };
}
export type Presses = ReturnType<typeof createPresses>;

function evidenceRuns({ id, agent, squad, status, evidence, result }: Task): Run[] {
  const head: Run[] = [{ text: `${id}: ${agent} of ${squad}, ${status}`, bold: true }];
  if (!evidence) return [...head, { text: "\nNothing was recorded of it yet." }];
  const commands = evidence.commands.map(({ command, exitCode }) => `${exitCode ?? "no"} ← ${command}`).join("\n");
  return [
    ...head,
    ...(evidence.verdict ? [{ text: `\n${evidence.verdict}` }] : []),
    { text: `\nFiles changed: ${evidence.filesChanged.slice(0, 40).join(", ") || "none"}` },
    ...(evidence.others ?? []).map(({ projectPath, filesChanged }) => ({
      text: `\nIn ${projectPath}: ${filesChanged.slice(0, 40).join(", ") || "none"}`,
    })),
    ...(commands ? [{ text: "\nCommands and how they ended:\n" }, { text: commands.slice(0, 2_500), pre: "" }] : []),
    ...(result ? [{ text: `\n${result.slice(0, 1_000)}` }] : []),
  ];
}
