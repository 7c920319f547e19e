import { z } from "zod";
import { DiskInfo, EngineInfo } from "./api.ts";
import { Approval } from "./approvals.ts";
import { BackgroundCommand } from "./background.ts";
import { CallEnd } from "./calls.ts";
import { ChannelInfo } from "./channels.ts";
import { ConversationInfo } from "./conversations.ts";
import { Attachment, FileEdit, Message, Source } from "./messages.ts";
import { Notice } from "./news.ts";
import { PersonForm } from "./person-form.ts";
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
/** News of one tool call. `running` brings its summary, or the next piece of its output. */
const ToolNews = z.object({
  tool: z.string(),
  state: z.enum(["started", "running", ...CallEnd.options]),
  /** Missing in events of earlier versions. */
  callId: z.string().optional(),
  /** A one-line summary: the command, the path, the question. */
  args: z.string().optional(),
  /** Its arguments as redacted JSON, unless they are long. */
  input: z.string().optional(),
  output: z.string().optional(),
  /** Set when a command has ended; null if a signal ended it. */
  exitCode: z.number().int().nullable().optional(),
  /** Set when an edit has ended, if it is small. */
  diff: FileEdit.optional(),
});
const amounts = z.object({ tokens: z.number().optional(), calls: z.number().optional(), money: z.number().optional() });

/** All events, by name, with their data. */
export const EVENT_DATA = {
  "message.queued": z.object({
    id,
    conversation: z.string(),
    source: Source,
    text: z.string(),
    attachments: z.array(Attachment).optional(),
  }),
  /** `model`, `reason`: the message was judged harder or easier than usual, so another tier answers. */
  "message.started": z.object({ id, conversation: z.string(), model: z.string().optional(), reason: z.string().optional() }),
  /** `restarted`: the text before this no longer counts. */
  "message.delta": z.object({ id, text: z.string(), restarted: z.boolean().optional() }),
  /** Not stored: a model's thoughts reach only current listeners. */
  "message.thought": z.object({ id, text: z.string() }),
  "message.tool": z.object({ id, ...ToolNews.shape }),
  /** A model request failed and will be retried. */
  "message.retried": Retry.extend({ id }),
  /** A person added text to a running turn. */
  "message.steered": z.object({ id, text: z.string() }),
  "message.finished": Message,
  /** Its folder, title, mode or model changed, or its answers were seen. */
  "conversation.changed": ConversationInfo,
  /** Not stored: asks an editor that has the conversation open for a newer text of a file, to have a form filled in, or to run a call's command in its terminal. */
  "editor.asked": z.object({
    ...{ ask: z.string(), path: z.string().optional(), form: PersonForm.optional() },
    terminal: z.object({ message: z.string(), call: z.string() }).optional(),
  }),
  "conversation.deleted": z.object({ name: z.string() }),
  /** The to-do list of a message's conversation, or of a task, was rewritten. */
  "todo.changed": z.object({ id, ...TodoList.shape }),
  /** A command was left running; `GET /api/background/:id` returns its output. */
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
  /** A page was added to, or removed from, the list that a person should review. */
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
  /** A step failed and will be retried. */
  "step.retried": Retry.extend({ runId, key: z.string() }),
  "run.finished": Run.extend({ runId }),
  /** A plan was started, asks, continues or has ended. */
  "plan.changed": Planning,
  "approval.asked": Approval,
  /** Whether it was allowed, denied, expired or withdrawn. */
  "approval.decided": Approval,
  "budget.reached": z.object({
    kind: z.enum(["turn", "task", "run", "conversation", "day"]),
    limit: amounts,
    used: amounts,
    owner: z.string(),
  }),
  /** A person got news: an unsolicited answer, a question, or an announcement of IO. */
  "news.told": Notice,
  /** The user gave a rule, or revoked it. */
  "rule.added": Rule,
  "rule.removed": Rule,
  /** It was created, paused, resumed, or has ended. */
  "schedule.changed": Schedule,
  "schedule.removed": z.object({ id }),
  /** A schedule was due, or what it started has ended. */
  "occurrence.changed": Occurrence,
  /** The pull request of a run or task was planned, asked about, pushed, opened, or failed. */
  "pull.changed": PullRequest,
  "channel.changed": ChannelInfo,
  "engine.changed": EngineInfo.pick({ kind: true, state: true }),
  /** Not stored, because a full disk stores nothing. */
  "disk.changed": DiskInfo,
  "config.changed": z.object({ keys: z.array(z.string()) }),
} as const;

export type EventType = keyof typeof EVENT_DATA;
export type EventData<T extends EventType> = z.infer<(typeof EVENT_DATA)[T]>;
/** The events of a swarm run. */
export type RunEventType = { [T in EventType]: EventData<T> extends { runId: string } ? T : never }[EventType];

/** An event without a number. With a conversation it is for that conversation's followers, without one for everybody. */
export type News<T extends EventType = EventType> = {
  [Each in T]: { type: Each; conversation?: string | undefined; data: EventData<Each> };
}[T];

/** The id of an event that is not stored or replayed. Clients get the id of the event before it. */
export const UNNUMBERED = 0;

/** An event with its place in the order of all events. */
export type Event<T extends EventType = EventType> = News<T> & { id: number };

/** Publishes an event for rooms above, without knowing who listens. */
export type Emit = (news: News) => void;

/** Builds an event of a generic type, for which the compiler cannot check the data. */
export function newsOf<T extends EventType>(type: T, data: EventData<T>, conversation?: string | null): News {
  return { type, ...(typeof conversation === "string" && { conversation }), data } as News;
}

/** Parses a stored or sent event; undefined if another version of IO wrote it and this one does not understand it. */
export function readEvent(written: { id: number; type: string; conversation?: string | null; data: unknown }): Event | undefined {
  const { id, type, conversation } = written;
  if (!isEventType(type)) return undefined;
  const data = EVENT_DATA[type].safeParse(written.data);
  return data.success ? ({ id, ...newsOf(type, data.data, conversation) } as Event) : undefined;
}

function isEventType(type: string): type is EventType {
  return Object.hasOwn(EVENT_DATA, type);
}
