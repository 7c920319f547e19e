/** The names of everything that is told as it happens. */
export const EVENT_TYPES = [
  "message.queued",
  "message.started",
  "message.delta",
  "message.tool",
  "message.finished",
  "task.queued",
  "task.started",
  "task.progress",
  "task.finished",
  "decision.logged",
  "squad.created",
  "squad.updated",
  "squad.deleted",
  "page.written",
  "page.deleted",
  "skill.installed",
  "skill.removed",
  "run.started",
  "phase.started",
  "phase.finished",
  "stream.started",
  "stream.finished",
  "step.started",
  "step.finished",
  "run.finished",
  "engine.changed",
  "config.changed",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** A piece of news. One with a conversation is for whoever follows that conversation; one without is for all. */
export interface News {
  type: EventType;
  conversation?: string | undefined;
  data: Record<string, unknown>;
}

/** News with its place in the order of everything that ever happened. */
export interface Event extends News {
  id: number;
}

/** How a lower room tells what happened, without knowing who listens. */
export type Emit = (news: News) => void;
