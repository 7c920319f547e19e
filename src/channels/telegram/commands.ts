import { UserError } from "../../lib/errors.ts";
import { oneLine } from "../../lib/quoted.ts";
import type { Changes } from "../../orchestrator/changes.ts";
import type { Inbox } from "../../orchestrator/inbox.ts";
import type { Status, Stopped } from "../../protocol/api.ts";
import { approvalLine } from "../../protocol/approval-text.ts";
import { formatFiles, formatUndo } from "../../protocol/change-text.ts";
import { showState } from "../../protocol/shown-state.ts";
import type { Task } from "../../protocol/squads.ts";
import type { Squads } from "../../squads/squads.ts";
import type { Messages } from "../../store/messages.ts";
import type { Swarm } from "../../swarm/run/swarm.ts";
import type { Approvals } from "../../tools/approvals/approvals.ts";
import { approvalButtons, runButtons, taskButtons } from "./buttons.ts";
import type { Chat } from "./chat.ts";
import { pieceOf } from "./format/answer.ts";
import { cutIntoPieces } from "./format/pieces.ts";
import type { Run } from "./format/runs.ts";
import type { Command } from "./incoming-update.ts";
import type { LiveStatus } from "./live-status.ts";
import type { Button } from "./part.ts";
import type { ReviewList } from "./reviews.ts";
import type { Teller } from "./teller.ts";
import type { Topics } from "./topics.ts";
import { troubleOf } from "./trouble.ts";
import { mayHeal, wordsOf } from "./trouble-words.ts";

export interface CommandsDeps {
  status: () => Status;
  stopAll: () => Stopped;
  inbox: Pick<Inbox, "cancel">;
  messages: Pick<Messages, "open">;
  approvals: Pick<Approvals, "waiting" | "decide">;
  squads: Squads;
  changes: Changes;
  swarm: Pick<Swarm, "list">;
  topics: Topics;
  teller: Teller;
  liveStatus: LiveStatus;
  reviewList: ReviewList;
  userId: () => number | undefined;
}

/** The commands in Telegram's menu. */
export const OFFERED = [
  { command: "status", description: "the model, the queue and what runs; pin keeps it in sight" },
  { command: "squads", description: "the teams" },
  { command: "tasks", description: "work in the background" },
  { command: "runs", description: "swarm runs" },
  { command: "approvals", description: "what waits for your decision" },
  { command: "review", description: "what agents wrote into the wiki; keep, change or revert it" },
  { command: "diff", description: "what the latest message, or the one named, changed in files" },
  { command: "undo", description: "brings those files back; once more does it again" },
  { command: "cancel", description: "ends the answer that is being written" },
  { command: "stop", description: "ends everything that runs" },
  { command: "new", description: "begins another conversation; with a name, goes to that one" },
  { command: "help", description: "this list" },
];

interface Reply {
  runs: Run[];
  buttons?: Button[][];
}

const LATEST = 8;
/** A longer diff is for a larger screen. */
const MOST_DIFF = 3_000;
const said = (text: string): Reply => ({ runs: [{ text }] });

/** Commands, answered at once and without the model. */
export function createCommands(deps: CommandsDeps) {
  const { stopAll, inbox, messages, approvals, squads, changes, swarm, topics, teller, liveStatus, reviewList } = deps;

  const answers: Record<string, (place: Chat, rest: string) => Reply | Promise<Reply>> = {
    help: () => help(),
    start: () => help(),
    status: (place, rest) => liveStatus.command(place, rest),
    squads() {
      const lines = squads
        .list()
        .map(({ slug, name, projectPath, status }) => `• ${slug} (${oneLine(name, 60)}), ${status}: ${projectPath}`);
      return listed("Squads", lines, "There is no squad yet.");
    },
    tasks() {
      const tasks = squads.tasks({ limit: LATEST });
      return {
        ...listed("Tasks, newest first", tasks.map(taskLine), "There is no task yet."),
        buttons: tasks.slice(0, 4).map(taskButtons),
      };
    },
    runs() {
      const runs = swarm.list({ limit: LATEST });
      const lines = runs.map(({ id, issue, ...run }) => {
        const { mark, words } = showState({ kind: "run", ...run });
        return `${mark} ${id} ${words}: ${oneLine(issue, 80)}`;
      });
      const named = runs.flatMap((run) => [runButtons(run).map(({ text, data }) => ({ text: `${text} of ${run.id}`, data }))]);
      return {
        ...listed("Runs, newest first", lines, "There is no run yet."),
        buttons: named.filter((row) => row.length > 0).slice(0, 4),
      };
    },
    approvals() {
      const waiting = approvals.waiting();
      const named = (id: string) => (waiting.length === 1 ? "" : ` ${id}`);
      return {
        ...listed(
          "Waiting for you",
          waiting.slice(0, 20).map((each) => `• ${approvalLine(each)}`),
          "Nothing waits for your decision.",
        ),
        buttons: waiting.slice(0, 4).flatMap(({ id }) => approvalButtons(id, named(id))),
      };
    },
    review: () => reviewList.reply(),
    async change(_place, rest) {
      const done = await reviewList.change(rest);
      await reviewList.renew();
      return said(done);
    },
    allow: (_place, rest) => decide(rest, "allow"),
    deny: (_place, rest) => decide(rest, "deny"),
    async diff(place, rest) {
      const { text, files, notes, undone } = await changes.diff(await changedIn(place, rest));
      if (files.length === 0) return said(["No change of a file is known.", ...notes].join("\n"));
      const cut = text.length > MOST_DIFF ? `${text.slice(0, MOST_DIFF)}\n…` : text;
      const head = `${undone ? "This was undone:\n" : ""}${formatFiles(files).join("\n")}\n`;
      return { runs: [{ text: head }, { text: cut, pre: "diff" }] };
    },
    undo: async (place, rest) => said(formatUndo(await changes.undo(await changedIn(place, rest)))),
    cancel(place) {
      const conversation = topics.conversationOf(place);
      const open = messages.open().filter((each) => each.conversation === conversation);
      const target = open.find(({ status }) => status === "running") ?? open.at(-1);
      if (!target || !inbox.cancel(target.id)) return said("Nothing is being answered here.");
      return said(`Cancelled: “${oneLine(target.text, 80)}”`);
    },
    stop() {
      const { messages: count, tasks, runs } = stopAll();
      return said(`Stopped: ${count} messages, ${tasks} tasks, ${runs} runs.`);
    },
  };

  /** The message or task named in the command, or the conversation's latest one that changed a file. */
  async function changedIn(place: Chat, rest: string): Promise<string> {
    const id = rest.trim() || (await changes.latest(topics.conversationOf(place), 1))[0]?.id;
    if (id === undefined) throw new UserError("No change of a file is known in this conversation.");
    return id;
  }

  function decide(rest: string, decision: "allow" | "deny"): Reply {
    const [id = "", ...note] = rest.split(/\s+/);
    const words = note.join(" ").trim();
    const given = { decision, scope: "once" as const, ...(words && { note: words }) };
    const { state } = approvals.decide(id, given, `telegram:${deps.userId() ?? "?"}`);
    return said(`${id} is ${state}.`);
  }

  async function begin(place: Chat, rest: string, key: string): Promise<void> {
    const begun = await refusable(() => topics.begin(place, rest));
    if (begun && "refused" in begun) return void (await show(said(begun.refused), place, key));
    const text = begun
      ? `This is the conversation ${begun.conversation}. At the terminal: io, then /conversation ${begun.conversation}`
      : `“${oneLine(rest, 60)}” cannot be a name: letters, digits, dots, dashes and underscores, at most 64.`;
    await show(said(text), begun?.place ?? place, key);
  }

  const show = ({ runs, buttons }: Reply, place: Chat, key: string) =>
    teller.show(key, place, { pieces: cutIntoPieces(runs).map(pieceOf), ...(buttons && { buttons }) });

  return {
    async run({ name, rest }: Command, place: Chat, key: string): Promise<void> {
      // A command that ran before a restart does not run again.
      if (teller.placeOf(key)) return;
      if (name === "new") return begin(place, rest, key);
      // If the daemon ends in the middle, its restart finishes the undo and must not revert it.
      if (name === "undo") await show(said("Undoing …"), place, key);
      if (name === "review") reviewList.shownAs(key);
      const answer = Object.hasOwn(answers, name) ? answers[name] : undefined;
      await show(
        answer ? await safely(() => answer(place, rest)) : said(`There is no command /${name}. /help lists them.`),
        place,
        key,
      );
    },
  };
}
export type Commands = ReturnType<typeof createCommands>;

async function safely(work: () => Reply | Promise<Reply>): Promise<Reply> {
  const done = await refusable(work);
  return "refused" in done ? said(done.refused) : done;
}

/** A refusal by IO or Telegram is an answer too. */
async function refusable<T>(work: () => T | Promise<T>): Promise<T | { refused: string }> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UserError) return { refused: error.message };
    const trouble = troubleOf(error);
    if (!trouble || mayHeal(trouble)) throw error;
    return { refused: `Telegram refuses this: ${wordsOf(trouble)}` };
  }
}

function help(): Reply {
  const lines = OFFERED.map(({ command, description }) => `/${command}: ${description}`);
  const ways =
    "Say anything, or send a photo, a document or a voice message. While I answer, a reply to the answer is said into it; what you send otherwise comes next.";
  return { runs: [{ text: `${ways}\n` }, { text: lines.join("\n") }] };
}

function listed(title: string, lines: readonly string[], none: string): Reply {
  return lines.length === 0 ? said(none) : { runs: [{ text: title, bold: true }, { text: `\n${lines.join("\n")}` }] };
}

function taskLine(task: Task): string {
  const { id, squad, agent, description } = task;
  const { mark, words } = showState({ kind: "task", task });
  return `${mark} ${id} ${words}: ${agent} of ${squad}, ${oneLine(description, 80)}`;
}
