import { z } from "zod";
import { named, oneLine } from "../lib/quoted.ts";
import { asData } from "../lib/untrusted.ts";
import { CatchUp, type Schedule } from "../protocol/schedules.ts";
import type { Origin } from "../protocol/squads.ts";
import { type Tool, tool } from "../tools/tool.ts";
import type { Schedules } from "./schedules.ts";

const DEADLINE_MS = 15_000;
const MAX_LISTED = 100;

/** The orchestrator's schedule tools. `originOf` returns who a call is made for. */
export function scheduleTools(schedules: Schedules, originOf: (owner: string) => Origin): Tool[] {
  return [
    tool({
      name: "schedule_add",
      description:
        'Have something done at set times: a message to yourself, or with squad a task, or with swarm (a folder or squad) a run. when: five cron fields, "every 2h", "daily 09:00", "weekdays 08:30", "in 20m" or an ISO time.',
      schema: z.strictObject({
        when: z.string().min(1).max(200),
        text: z.string().min(1).max(100_000).describe("what you are told then"),
        tz: z.string().max(100).optional(),
        squad: z.string().min(1).optional(),
        swarm: z.string().min(1).optional(),
        catchUp: CatchUp.optional().describe("for what was due while IO did not run; once is the default"),
        maxAge: z.string().max(20).optional(),
      }),
      kind: "effect",
      deadlineMs: DEADLINE_MS,
      async run(given, { owner }) {
        const { conversation, source } = originOf(owner);
        const schedule = schedules.add(given, { by: "model", source, conversation });
        return `Made ${lineOf(schedule)}.`;
      },
    }),
    tool({
      name: "schedule_list",
      description: "What is done at set times.",
      schema: z.strictObject({}),
      kind: "read",
      deadlineMs: DEADLINE_MS,
      async run() {
        const all = schedules.list({ limit: MAX_LISTED });
        return all.length === 0 ? "There are no schedules." : asData(all.map(lineOf).join("\n"));
      },
    }),
    tool({
      name: "schedule_remove",
      description: "Remove a schedule.",
      schema: z.strictObject({ id: z.string().min(1) }),
      kind: "effect",
      deadlineMs: DEADLINE_MS,
      async run({ id }) {
        schedules.remove(id);
        return `Removed ${named(id)}.`;
      },
    }),
  ];
}

function lineOf({ id, when, tz, text, squad, swarm, state, nextAt }: Schedule): string {
  const what = squad !== null ? `task for ${oneLine(squad, 100)}` : swarm !== null ? `run in ${oneLine(swarm, 200)}` : "message";
  return `${id} (${oneLine(when, 100)}, ${tz}; ${state}${nextAt === null ? "" : `, next ${nextAt}`}), ${what}: ${oneLine(text, 200)}`;
}
