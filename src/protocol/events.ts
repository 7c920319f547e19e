import { z } from "zod";
import { DiskInfo, EngineInfo } from "./api.ts";
import { Approval } from "./approvals.ts";
import { BackgroundCommand } from "./background.ts";
import { CallEnd } from "./calls.ts";
import { ChannelInfo } from "./channels.ts";
import { ConversationInfo } from "./conversations.ts";
import { Attachment, FileEdit, Message, Source } from "./messages.ts";
import { Notice } from "./news.ts";
import { Planning } from "./plans.ts";
import { PullRequest } from "./pulls.ts";
import { Rule } from "./rules.ts";
import { Run, RunPhase, RunStep, RunStream, RunSummary } from "./runs.ts";
import { Occurrence, Schedule } from "./schedules.ts";
import { Activity, Decision, Squad, Task } from "./squads.ts";
import { TodoList } from "./todo.ts";
import { Retry } from "./turns.ts";

const id = z.string();
const runId = z.string();
const page = z.object({ path: z.string(), title: z.string() });
const skill = z.object({ slug: z.string(), name: z.string() });
const task = Task.pick({ id: true, squad: true, agent: true });
/** What is heard of one call of a tool. `running` brings what it is about, or the next piece of its output. */
const ToolNews = z.object({
  tool: z.string(),
  state: z.enum(["started", "running", ...CallEnd.options]),
  /** Missing in what an earlier version wrote. */
  callId: z.string().optional(),
  /** What it is about, in a line: the command, the path, the question. */
  args: z.string().optional(),
  /** Its arguments as JSON, without secrets, unless they are long. */
  input: z.string().optional(),
  output: z.string().optional(),
  /** Of a command that has ended; null for one that a signal ended. */
  exitCode: z.number().int().nullable().optional(),
  /** Of an edit that has ended, if it is small. */
  diff: FileEdit.optional(),
});
const amounts = z.object({ tokens: z.number().optional(), calls: z.number().optional(), money: z.number().optional() });

/** Everything that is told as it happens, by its name, with what it carries. */
export const EVENT_DATA = {
  "message.queued": z.object({
    id,
    conversation: z.string(),
    source: Source,
    text: z.string(),
    attachments: z.array(Attachment).optional(),
  }),
  /** `model`, `reason`: the message was judged harder or easier than usual, so another tier is asked. */
  "message.started": z.object({ id, conversation: z.string(), model: z.string().optional(), reason: z.string().optional() }),
  /** `restarted`: what was said before this no longer counts. */
  "message.delta": z.object({ id, text: z.string(), restarted: z.boolean().optional() }),
  /** Told only to those who listen: what a model thinks is not written down. */
  "message.thought": z.object({ id, text: z.string() }),
  "message.tool": z.object({ id, ...ToolNews.shape }),
  /** A try at the model came to nothing, and another follows. */
  "message.retried": Retry.extend({ id }),
  /** Something more was said into a turn that runs. */
  "message.steered": z.object({ id, text: z.string() }),
  "message.finished": Message,
  /** Its folder, title, mode or model was changed, or its answers were seen. */
  "conversation.changed": ConversationInfo,
  /** Told only to those who listen: an editor that has the conversation open may hold a newer text of this file. */
  "editor.asked": z.object({ ask: z.string(), path: z.string() }),
  "conversation.deleted": z.object({ name: z.string() }),
  /** The steps of a message's conversation, or of a task, were written anew. */
  "todo.changed": z.object({ id, ...TodoList.shape }),
  /** A command was left running; what it prints is asked for (`GET /api/background/:id`). */
  "background.started": BackgroundCommand,
  "background.finished": BackgroundCommand,
  "task.queued": task.extend(Task.pick({ description: true, reason: true, model: true }).shape),
  "task.started": task.extend(Task.pick({ model: true, attempts: true }).shape),
  "task.progress": z.looseObject({ ...task.shape, ...Activity.pick({ kind: true, summary: true }).shape }),
  "task.finished": Task,
  "decision.logged": Decision,
  "squad.created": Squad,
  "squad.updated": Squad,
  "squad.deleted": Squad.pick({ slug: true }),
  "page.written": page,
  "page.deleted": page,
  /** A page was put on the list of what a person has not looked at, or was taken off it. */
  "review.changed": z.object({ path: z.string() }),
  "skill.installed": skill,
  "skill.removed": skill,
  "run.started": RunSummary.extend({ runId }),
  "phase.started": RunPhase.extend({ runId }),
  "phase.finished": RunPhase.extend({ runId }),
  "stream.started": RunStream.extend({ runId }),
  "stream.finished": RunStream.extend({ runId }),
  "step.started": RunStep.extend({ runId }),
  "step.finished": RunStep.extend({ runId }),
  /** A try at a step came to nothing, and another follows. */
  "step.retried": Retry.extend({ runId, key: z.string() }),
  "run.finished": Run.extend({ runId }),
  /** A plan was begun, asks, goes on or is over. */
  "plan.changed": Planning,
  "approval.asked": Approval,
  /** Whatever its end: allowed, denied, expired or withdrawn. */
  "approval.decided": Approval,
  "budget.reached": z.object({
    kind: z.enum(["turn", "task", "run", "conversation", "day"]),
    limit: amounts,
    used: amounts,
    owner: z.string(),
  }),
  /** News went out to a person: the answer to nobody's question, a question, or something IO itself has to say. */
  "news.told": Notice,
  /** The user ruled something, or took it back. */
  "rule.added": Rule,
  "rule.removed": Rule,
  /** It was made, paused, resumed, or has come to its end. */
  "schedule.changed": Schedule,
  "schedule.removed": z.object({ id }),
  /** A schedule was due, or what it began has ended. */
  "occurrence.changed": Occurrence,
  /** The pull request of a run or a task was planned, asked about, pushed, opened, or could not be made. */
  "pull.changed": PullRequest,
  "channel.changed": ChannelInfo,
  "engine.changed": EngineInfo.pick({ kind: true, state: true }),
  /** Told only to those who listen: it is not written down, since a full disk takes nothing. */
  "disk.changed": DiskInfo,
  "config.changed": z.object({ keys: z.array(z.string()) }),
} as const;

export type EventType = keyof typeof EVENT_DATA;
export type EventData<T extends EventType> = z.infer<(typeof EVENT_DATA)[T]>;
/** The events of a swarm run. */
export type RunEventType = { [T in EventType]: EventData<T> extends { runId: string } ? T : never }[EventType];

/** A piece of news. One with a conversation is for whoever follows that conversation; one without is for all. */
export type News<T extends EventType = EventType> = {
  [Each in T]: { type: Each; conversation?: string | undefined; data: EventData<Each> };
}[T];

/** The place of an event that was not written down and is not told later. A client is sent the id of the event before it. */
export const UNNUMBERED = 0;

/** News with its place in the order of everything that ever happened. */
export type Event<T extends EventType = EventType> = News<T> & { id: number };

/** How a lower room tells what happened, without knowing who listens. */
export type Emit = (news: News) => void;

/** News of a type that is a parameter, where the compiler cannot see that its data fits. */
export function newsOf<T extends EventType>(type: T, data: EventData<T>, conversation?: string | null): News {
  return { type, ...(typeof conversation === "string" && { conversation }), data } as News;
}

/** An event as it was written down or sent; undefined for one of another version of IO that this one does not understand. */
export function readEvent(written: { id: number; type: string; conversation?: string | null; data: unknown }): Event | undefined {
  const { id, type, conversation } = written;
  if (!isEventType(type)) return undefined;
  const data = EVENT_DATA[type].safeParse(written.data);
  return data.success ? ({ id, ...newsOf(type, data.data, conversation) } as Event) : undefined;
}

function isEventType(type: string): type is EventType {
  return Object.hasOwn(EVENT_DATA, type);
}
