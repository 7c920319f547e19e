import { UserError } from "../../lib/errors.ts";
import { oneLine } from "../../lib/quoted.ts";
import type { Inbox } from "../../orchestrator/inbox.ts";
import type { Status, Stopped } from "../../protocol/api.ts";
import { approvalLine } from "../../protocol/approval-text.ts";
import type { Task } from "../../protocol/squads.ts";
import type { Squads } from "../../squads/squads.ts";
import type { Messages } from "../../store/messages.ts";
import type { Swarm } from "../../swarm/run/swarm.ts";
import type { Approvals } from "../../tools/approvals/approvals.ts";
import { approvalButtons, taskButtons } from "./buttons.ts";
import { pieceOf } from "./format/answer.ts";
import { cutIntoPieces } from "./format/pieces.ts";
import type { Run } from "./format/runs.ts";
import type { LiveStatus } from "./live-status.ts";
import type { Button } from "./part.ts";
import type { Place } from "./place.ts";
import type { Teller } from "./teller.ts";
import type { Command } from "./told.ts";
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
  swarm: Pick<Swarm, "list">;
  topics: Topics;
  teller: Teller;
  liveStatus: LiveStatus;
  userId: () => number | undefined;
}

/** What is offered in Telegram's menu. */
export const OFFERED = [
  { command: "status", description: "the model, the queue and what runs; pin keeps it in sight" },
  { command: "squads", description: "the teams" },
  { command: "tasks", description: "work in the background" },
  { command: "runs", description: "swarm runs" },
  { command: "approvals", description: "what waits for your decision" },
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
const said = (text: string): Reply => ({ runs: [{ text }] });

/** Commands, answered at once and without the model. */
export function createCommands(deps: CommandsDeps) {
  const { stopAll, inbox, messages, approvals, squads, swarm, topics, teller, liveStatus } = deps;

  const answers: Record<string, (place: Place, rest: string) => Reply | Promise<Reply>> = {
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
      const lines = swarm
        .list({ limit: LATEST })
        .map(({ id, status, outcome, issue }) => `• ${id} ${status}${outcome ? `, ${outcome}` : ""}: ${oneLine(issue, 80)}`);
      return listed("Runs, newest first", lines, "There is no run yet.");
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
    allow: (_place, rest) => decide(rest, "allow"),
    deny: (_place, rest) => decide(rest, "deny"),
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

  function decide(rest: string, decision: "allow" | "deny"): Reply {
    const [id = "", ...note] = rest.split(/\s+/);
    const words = note.join(" ").trim();
    const given = { decision, scope: "once" as const, ...(words && { note: words }) };
    const { state } = approvals.decide(id, given, `telegram:${deps.userId() ?? "?"}`);
    return said(`${id} is ${state}.`);
  }

  async function begin(place: Place, rest: string, key: string): Promise<void> {
    const begun = await refusable(() => topics.begin(place, rest));
    if (begun && "refused" in begun) return void (await show(said(begun.refused), place, key));
    const text = begun
      ? `This is the conversation ${begun.conversation}. At the terminal: io, then /conversation ${begun.conversation}`
      : `“${oneLine(rest, 60)}” cannot be a name: letters, digits, dots, dashes and underscores, at most 64.`;
    await show(said(text), begun?.place ?? place, key);
  }

  const show = ({ runs, buttons }: Reply, place: Place, key: string) =>
    teller.show(key, place, { pieces: cutIntoPieces(runs).map(pieceOf), ...(buttons && { buttons }) });

  return {
    async run({ name, rest }: Command, place: Place, key: string): Promise<void> {
      // A command that was run by an earlier life is not run again.
      if (teller.placeOf(key)) return;
      if (name === "new") return begin(place, rest, key);
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

/** What a person or Telegram will not have is an answer too. */
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

function taskLine({ id, squad, agent, status, description }: Task): string {
  return `• ${id} ${status}: ${agent} of ${squad}, ${oneLine(description, 80)}`;
}
