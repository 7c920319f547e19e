import { conflict, messageOf, missing } from "../../lib/errors.ts";
import { newId } from "../../lib/ids.ts";
import type { Emit } from "../../protocol/events.ts";
import type { Planning } from "../../protocol/plans.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import type { Swarm } from "./swarm.ts";

/** How many plans that are over are remembered. */
const KEPT = 20;
const MOST_AT_ONCE = 4;

export interface PlanDeskDeps {
  plan: Swarm["plan"];
  settings: () => RunSettings;
  emit: Emit;
  now?: () => Date;
}

interface Open {
  planning: Planning;
  stop: AbortController;
  answer: ((text: string | null) => void) | undefined;
}

/**
 * Plans whose questions are answered from wherever a person is. They live as long as the daemon: what was answered is in the
 * project's draft of the plan, from which another can go on.
 */
export function createPlanDesk({ plan, settings, emit, now = () => new Date() }: PlanDeskDeps) {
  const plans = new Map<string, Open>();
  const isOver = ({ planning }: Open) => planning.finishedAt !== null;
  const find = (id: string): Open => {
    const open = plans.get(id);
    if (!open) throw missing("There is no plan with this id. Plans are forgotten when the daemon ends; plan.md stays.");
    return open;
  };
  const change = (open: Open, changes: Partial<Planning>): void => {
    open.planning = { ...open.planning, ...changes };
    emit({ type: "plan.changed", data: open.planning });
  };
  const end = (open: Open, changes: Partial<Planning>): void =>
    change(open, { ...changes, questions: null, finishedAt: now().toISOString() });

  async function work(open: Open, standIns: boolean): Promise<void> {
    const { projectPath, issue } = open.planning;
    const { signal } = open.stop;
    try {
      const { path, requirements } = await plan({
        ...{ projectPath, issue, standIns, signal, settings: settings() },
        ask: (questions, round) =>
          new Promise((answer) => {
            open.answer = answer;
            signal.addEventListener("abort", () => answer(null), { once: true });
            change(open, { status: "asking", questions, round });
          }),
      });
      end(open, { status: "done", path, requirements });
    } catch (error) {
      // Whatever ended it, the person is told: nobody waits for this promise.
      end(open, signal.aborted ? { status: "cancelled" } : { status: "failed", error: messageOf(error) });
    }
  }

  return {
    list: (): Planning[] => [...plans.values()].map(({ planning }) => planning).reverse(),
    find: (id: string): Planning => find(id).planning,
    begin({ projectPath, issue, standIns }: { projectPath: string; issue: string; standIns: boolean }): Planning {
      const open = [...plans.values()].filter((each) => !isOver(each));
      if (open.length >= MOST_AT_ONCE)
        throw conflict(`${open.length} plans are in the making. Answer or cancel one of them first.`);
      for (const id of [...plans].flatMap(([id, each]) => (isOver(each) ? [id] : [])).slice(0, -KEPT)) plans.delete(id);
      const planning: Planning = {
        ...{ id: newId("p"), projectPath, issue, status: "thinking", questions: null, round: 0 },
        ...{ path: null, requirements: null, error: null, createdAt: now().toISOString(), finishedAt: null },
      };
      const fresh: Open = { planning, stop: new AbortController(), answer: undefined };
      plans.set(planning.id, fresh);
      emit({ type: "plan.changed", data: planning });
      void work(fresh, standIns);
      return planning;
    },
    /** An empty answer means: use your judgement. */
    answer(id: string, text: string): Planning {
      const open = find(id);
      const { answer } = open;
      if (!answer || open.planning.status !== "asking") throw conflict("This plan asks nothing now.");
      open.answer = undefined;
      change(open, { status: "thinking", questions: null });
      answer(text);
      return open.planning;
    },
    cancel(id: string): Planning {
      const open = find(id);
      if (isOver(open)) throw conflict("This plan is over.");
      open.stop.abort();
      return open.planning;
    },
    close(): void {
      for (const { stop } of plans.values()) stop.abort();
    },
  };
}
export type PlanDesk = ReturnType<typeof createPlanDesk>;
