import { isAbsolute } from "node:path";
import { conflict, missing, usageError } from "../lib/errors.ts";
import { isFolder } from "../lib/is-folder.ts";
import { oneLine } from "../lib/quoted.ts";
import type { Inbox } from "../orchestrator/inbox.ts";
import type { Owed } from "../protocol/outbox.ts";
import type { Occurrence, Schedule } from "../protocol/schedules.ts";
import type { ScheduleActions } from "../schedules/occurrences.ts";
import { createSchedules, endOfMessage, endOfRun, endOfTask, type Schedules } from "../schedules/schedules.ts";
import type { Squads } from "../squads/squads.ts";
import type { Messages } from "../store/messages.ts";
import type { ScheduleRows } from "../store/schedules.ts";
import { readRunSettings } from "../swarm/pipeline/settings.ts";
import type { Swarm } from "../swarm/run/swarm.ts";
import type { Core } from "./core.ts";

export interface SchedulePartsDeps {
  core: Core;
  env: NodeJS.ProcessEnv;
  rows: ScheduleRows;
  messages: Messages;
  squads: Squads;
  swarm: Swarm;
  submit: Inbox["submit"];
  owe: (owed: Owed) => void;
}

/** Schedules, with what they can start. */
export function buildSchedules(deps: SchedulePartsDeps): Schedules {
  const { core, rows, owe } = deps;
  const { store, hub, approvals, log } = core;
  const asking = new AbortController();
  const schedules = createSchedules({
    ...{ store, rows, log, emit: hub.emit, actions: actionsOf(deps) },
    onPaused({ id, when, text, conversation, reason }) {
      const said = `The schedule ${id} (${oneLine(when, 100)}: ${oneLine(text, 100)}) is paused: ${oneLine(reason ?? "", 500)}. Go on with it: io schedule resume ${id}`;
      const source = rows.sourceOf(id) ?? { channel: "api" as const };
      owe({ kind: "news", about: id, conversation, source, text: said, level: "urgent", key: `paused:${id}:${Date.now()}` });
    },
    askToCatchUp: (schedule, occurrence) => askToCatchUp(approvals, schedule, occurrence, asking.signal),
  });
  const stopListening = hub.subscribe(schedules.heard);
  return {
    ...schedules,
    async close() {
      asking.abort();
      stopListening();
      await schedules.close();
    },
  };
}

function actionsOf({ env, rows, messages, squads, swarm, submit }: SchedulePartsDeps): ScheduleActions {
  const projectOf = (given: string) => {
    const team = squads.projectOf(given);
    if (!team && !isAbsolute(given))
      throw missing(`There is no squad "${given.slice(0, 60)}", and it is no absolute path of a folder.`);
    const projectPath = team?.projectPath ?? given;
    if (!isFolder(projectPath)) throw missing(`${projectPath}: there is no such folder.`);
    return { projectPath, decisions: team?.decisions, squad: team && given };
  };
  const originOf = ({ id, conversation }: Schedule) => ({
    conversation,
    source: rows.sourceOf(id) ?? { channel: "api" as const },
  });
  return {
    check({ squad, swarm: project }) {
      if (project !== null) projectOf(project);
      if (squad === null) return;
      const { slug } = squads.find(squads.named(squad));
      if (squads.agents(slug).length === 0)
        throw conflict(`The squad "${slug}" has no agents yet. Add some first: io squad analyze ${slug}`);
    },
    send: ({ id, text, conversation }, occurrence) =>
      submit({ text, conversation, source: { channel: "schedule", name: id }, idempotencyKey: `schedule:${occurrence}` }).id,
    delegate(schedule) {
      if (schedule.squad === null) throw usageError("This schedule has no squad.");
      return squads.delegate(squads.named(schedule.squad), { task: schedule.text, origin: originOf(schedule) }).task.id;
    },
    async run({ swarm: project, text, conversation }, id) {
      const { projectPath, decisions, squad } = projectOf(project!);
      await swarm.start({
        id,
        projectPath,
        issue: text,
        settings: readRunSettings(env),
        squad,
        decisions,
        conversation,
        unattended: true,
      });
    },
    endOf(what, id) {
      if (what === "run") {
        const run = swarm.show(id);
        return run ? endOfRun(run) : "unknown";
      }
      if (what === "task") {
        const task = taskIn(squads, id);
        if (!task) return "unknown";
        return task.finishedAt === null ? undefined : endOfTask(task);
      }
      const message = messages.find(id);
      if (!message) return "unknown";
      return message.finishedAt === null ? undefined : endOfMessage(message);
    },
  };
}

function taskIn(squads: Squads, id: string) {
  try {
    return squads.task(id);
  } catch {
    // It was removed with its squad, or by age.
    return undefined;
  }
}

/** Asks whether to do now what a schedule missed; undefined if nobody waits for the answer any more. */
async function askToCatchUp(
  approvals: Core["approvals"],
  { id, when, text }: Schedule,
  occurrence: Occurrence,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const { state } = await approvals.ask({
    ...{ kind: "call", owner: id, actor: "schedule", tool: "schedule", args: { occurrence: occurrence.id }, signal },
    summary: `do now what was due at ${occurrence.dueAt} (${oneLine(when, 100)}): ${oneLine(text, 200)}`,
    reason: occurrence.reason ?? undefined,
  });
  return state === "let go" ? undefined : state === "allowed";
}
