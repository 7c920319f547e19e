import { z } from "zod";
import { EngineInfo } from "./api.ts";
import { Approval } from "./approvals.ts";
import { ChannelInfo } from "./channels.ts";
import { Message, Source } from "./messages.ts";
import { Planning } from "./plans.ts";
import { Run, RunPhase, RunStep, RunStream, RunSummary } from "./runs.ts";
import { Activity, Decision, Squad, Task } from "./squads.ts";

const id = z.string();
const runId = z.string();
const page = z.object({ path: z.string(), title: z.string() });
const skill = z.object({ slug: z.string(), name: z.string() });
const task = Task.pick({ id: true, squad: true, agent: true });
const amounts = z.object({ tokens: z.number().optional(), calls: z.number().optional(), money: z.number().optional() });

/** Everything that is told as it happens, by its name, with what it carries. */
const DATA = {
  "message.queued": z.object({ id, conversation: z.string(), source: Source, text: z.string() }),
  "message.started": z.object({ id, conversation: z.string() }),
  /** `restarted`: what was said before this no longer counts. */
  "message.delta": z.object({ id, text: z.string(), restarted: z.boolean().optional() }),
  "message.tool": z.object({ id, tool: z.string(), state: z.enum(["started", "done", "failed"]) }),
  /** Something more was said into a turn that runs. */
  "message.steered": z.object({ id, text: z.string() }),
  "message.finished": Message,
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
  "skill.installed": skill,
  "skill.removed": skill,
  "run.started": RunSummary.extend({ runId }),
  "phase.started": RunPhase.extend({ runId }),
  "phase.finished": RunPhase.extend({ runId }),
  "stream.started": RunStream.extend({ runId }),
  "stream.finished": RunStream.extend({ runId }),
  "step.started": RunStep.extend({ runId }),
  "step.finished": RunStep.extend({ runId }),
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
  "channel.changed": ChannelInfo,
  "engine.changed": EngineInfo.pick({ kind: true, state: true }),
  "config.changed": z.object({ keys: z.array(z.string()) }),
} as const;

export type EventType = keyof typeof DATA;
export type EventData<T extends EventType> = z.infer<(typeof DATA)[T]>;
/** The events of a swarm run. */
export type RunEventType = { [T in EventType]: EventData<T> extends { runId: string } ? T : never }[EventType];

/** A piece of news. One with a conversation is for whoever follows that conversation; one without is for all. */
export type News<T extends EventType = EventType> = {
  [Each in T]: { type: Each; conversation?: string | undefined; data: EventData<Each> };
}[T];

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
  const data = DATA[type].safeParse(written.data);
  return data.success ? ({ id, ...newsOf(type, data.data, conversation) } as Event) : undefined;
}

function isEventType(type: string): type is EventType {
  return Object.hasOwn(DATA, type);
}
