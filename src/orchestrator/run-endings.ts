import { messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { oneLine } from "../lib/quoted.ts";
import { asData } from "../lib/untrusted.ts";
import type { Source } from "../protocol/messages.ts";
import type { Run } from "../protocol/runs.ts";
import type { Squads } from "../squads/squads.ts";
import type { Hub } from "../store/hub.ts";
import { type Store, whenFree } from "../store/open.ts";
import type { State } from "../store/state.ts";
import type { Swarm } from "../swarm/run/swarm.ts";
import { describeRun } from "../swarm/tools.ts";
import type { Outbox } from "./outbox.ts";

export interface RunEndingsDeps {
  store: Pick<Store, "transaction">;
  hub: Hub;
  swarm: Swarm;
  squads: Pick<Squads, "projectOf" | "logDecision">;
  outbox: Pick<Outbox, "owe">;
  /** Who asked for a run. */
  askerOf: (runId: string) => Source;
  state: State;
  log: Log;
}

/** How many of the latest runs are checked at a start for unreported ends. */
const LATEST = 100;

/** Handles the end of each run once: reports it to whoever asked, and adds its decisions to its squad's log. */
export function createRunEndings({ store, hub, swarm, squads, outbox, askerOf, state, log }: RunEndingsDeps) {
  function settle(run: Run): void {
    if (run.finishedAt === null) return;
    const decided = `decided:${run.id}`;
    const { squad } = run;
    // A run that failed before its first decision may still be resumed.
    const decidedAll = run.status === "done" || run.decisions.length > 0;
    if (squad !== null && decidedAll && state.get(decided) === undefined && squads.projectOf(squad)) {
      store.transaction(() => {
        for (const decision of run.decisions)
          squads.logDecision(squad, { decision, context: `swarm run ${run.id}`, author: "swarm" });
        state.set(decided, "yes");
      });
    }
    notifyAsker(run, `A swarm run has ended.\n${asData(describeRun(run))}`, run.finishedAt);
  }

  function notifyAsker({ id, conversation }: Run, text: string, occasion: string): void {
    if (conversation === null) return;
    outbox.owe({ kind: "run", about: id, conversation, source: askerOf(id), text, key: `run:${id}:${occasion}` });
  }

  async function resume(run: Run): Promise<void> {
    try {
      await swarm.resume(run.id, { unattended: true });
    } catch (error) {
      // A stopping daemon leaves it to the next start.
      if (error instanceof UserError && error.trouble === "unavailable") return;
      log.warn("a run could not be taken up again", { run: run.id, error: messageOf(error) });
      notifyAsker(
        run,
        `A swarm run was interrupted and cannot go on by itself: ${oneLine(messageOf(error), 1_000)}\n${asData(describeRun(run))}`,
        "stuck",
      );
    }
  }

  return {
    /** Resumes interrupted runs, and reports ends that were missed before a restart. */
    start(): () => void {
      for (const { id, finishedAt } of swarm.list({ limit: LATEST })) {
        const run = finishedAt === null ? undefined : swarm.show(id);
        if (run) settle(run);
      }
      for (const run of swarm.orphans(LATEST)) void resume(run);
      return hub.subscribe((event) => {
        if (event.type !== "run.finished") return;
        const { runId } = event.data;
        void whenFree(() => {
          const run = swarm.show(runId);
          if (run) settle(run);
        }).catch((error: unknown) => log.error("what follows from a run's end could not be done", { run: runId, error }));
      });
    },
  };
}
