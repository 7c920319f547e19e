import { conflict, messageOf, missing } from "../../lib/errors.ts";
import { newId } from "../../lib/ids.ts";
import type { Emit } from "../../protocol/events.ts";
import type { Planning } from "../../protocol/plans.ts";
import type { Said } from "../../protocol/runs.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { openProject } from "./checkout.ts";
import type { Swarm } from "./swarm.ts";

/** How many finished plans are remembered. */
const KEPT = 20;
const MOST_AT_ONCE = 4;

export interface PlanDeskDeps {
  plan: Swarm["plan"];
  /** The default settings of a plan. */
  settings: () => RunSettings;
  /** IO's own folder, which is no project. */
  dataFolder: string;
  emit: Emit;
  /** Receives what the agents say, as they say it. */
  onSay?: ((said: Said, planId: string) => void) | undefined;
  now?: () => Date;
}

export interface NewPlanning {
  projectPath: string;
  issue: string;
  standIns: boolean;
  settings?: RunSettings | undefined;
  source?: string | undefined;
}

interface Open {
  planning: Planning;
  stop: AbortController;
  answer: ((text: string | null) => void) | undefined;
}

/**
 * Plans whose questions a person answers from any channel. They live as long as the daemon: the answers are saved in the
 * project's plan draft, from which another plan can go on.
 */
export function createPlanDesk({ plan, settings, dataFolder, emit, onSay, now = () => new Date() }: PlanDeskDeps) {
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

  /**
   * Resolves when the plan is over. Rejects if something was wrong before an agent was asked; later failures are announced as
   * events.
   */
  async function work(open: Open, { standIns, source, ...given }: NewPlanning, onBegun: () => void): Promise<void> {
    const { id, projectPath, issue } = open.planning;
    const { signal } = open.stop;
    let isBegun = false;
    try {
      const result = await plan({
        ...{ projectPath, issue, standIns, source, signal, settings: given.settings ?? settings() },
        ask: (questions, round) =>
          new Promise((answer) => {
            open.answer = answer;
            signal.addEventListener("abort", () => answer(null), { once: true });
            change(open, { status: "asking", questions, round });
          }),
        onModel(model) {
          isBegun = true;
          change(open, { model });
          onBegun();
        },
        onTurn: (agent) => change(open, { agent, turns: open.planning.turns + 1 }),
        ...(onSay && { onSay: (said) => onSay(said, id) }),
      });
      end(open, { status: "done", path: result.path, requirements: result.requirements, result });
    } catch (error) {
      end(open, { status: signal.aborted ? "cancelled" : "failed", error: messageOf(error) });
      if (!isBegun) throw error;
    }
  }

  return {
    list: (): Planning[] => [...plans.values()].map(({ planning }) => planning).reverse(),
    find: (id: string): Planning => find(id).planning,
    /** Resolves once an agent is asked; throws earlier if the project, the settings or the models are wrong. */
    async begin(given: NewPlanning): Promise<Planning> {
      const { projectPath, issue } = given;
      openProject(projectPath, dataFolder);
      const open = [...plans.values()].filter((each) => !isOver(each));
      if (open.length >= MOST_AT_ONCE)
        throw conflict(`${open.length} plans are in the making. Answer or cancel one of them first.`);
      for (const id of [...plans].flatMap(([id, each]) => (isOver(each) ? [id] : [])).slice(0, -KEPT)) plans.delete(id);
      const planning: Planning = {
        ...{ id: newId("p"), projectPath, issue, status: "thinking", questions: null, round: 0 },
        ...{
          path: null,
          requirements: null,
          error: null,
          model: null,
          agent: null,
          turns: 0,
          result: null,
          createdAt: now().toISOString(),
          finishedAt: null,
        },
      };
      const fresh: Open = { planning, stop: new AbortController(), answer: undefined };
      plans.set(planning.id, fresh);
      emit({ type: "plan.changed", data: planning });
      await new Promise<void>((begun, failed) => void work(fresh, given, begun).then(begun, failed));
      return fresh.planning;
    },
    /** An empty answer means "use your judgement"; null means that nobody is left to ask. */
    answer(id: string, text: string | null): Planning {
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
    isIdle: () => [...plans.values()].every(isOver),
    close(): void {
      for (const { stop } of plans.values()) stop.abort();
    },
  };
}
export type PlanDesk = ReturnType<typeof createPlanDesk>;
