import { isSettled } from "../protocol/pulls.ts";
import type { PullRow, PullRows } from "../store/pulls.ts";
import type { TriggerRow, WatchRow, WatchRows } from "../store/watches.ts";
import { ForgeError } from "./client.ts";
import { createPermissions, isLabelled } from "./look.ts";
import type { Forge } from "./port.ts";
import type { Pulls } from "./pulls.ts";
import { sayIfTaken, sayOnce } from "./say-once.ts";
import { claimIn, claimMark, claimText, failureText, issueRequest } from "./watch-text.ts";

/** A run's progress, as far as a watch needs it. */
export interface WatchedRun {
  isOver: boolean;
  /** How the run ended, in words. */
  end: string;
}

export interface IssueWorkDeps {
  rows: WatchRows;
  pulls: Pick<Pulls, "plan" | "forget">;
  pullRows: Pick<PullRows, "ofOwner">;
  newRun: () => string;
  findRun: (id: string) => WatchedRun | undefined;
  /** Fetches the forge's default branch into the project and returns its commit. */
  freshBase: (projectPath: string, forge: Forge) => Promise<string>;
  startRun: (run: { id: string; projectPath: string; squad: string | null; issue: string; base: string }) => Promise<void>;
}

/** How many runs started from issues may be active per watch. */
const AT_ONCE = 1;

/**
 * Takes an issue from the label to the pull request. Each step is recorded before it runs and can safely be repeated: after the
 * daemon was killed, work resumes from the recorded state.
 */
export function createIssueWork({ rows, pulls, pullRows, newRun, findRun, freshBase, startRun }: IssueWorkDeps) {
  const { move } = rows;

  /** Takes the next step, if one can be taken now. */
  async function step(watch: WatchRow, forge: Forge, trigger: TriggerRow): Promise<TriggerRow> {
    if (trigger.state === "waiting") return begin(watch, forge, trigger);
    if (trigger.state === "claiming") return claim(forge, trigger);
    if (trigger.state === "starting") return start(watch, forge, trigger);
    return finish(forge, trigger);
  }

  async function begin(watch: WatchRow, forge: Forge, trigger: TriggerRow): Promise<TriggerRow> {
    const { id, number, kind } = trigger;
    const earlier = rows.ofNumber(watch, number).find((each) => each.id !== id && each.run !== null && isUnderWay(each));
    if (earlier) return move(id, { state: "ignored", reason: `${earlier.run} works on this issue already` });
    const others = rows.open(watch.id).filter((each) => each.run !== null && each.round === null && each.state !== "waiting");
    if (others.length >= AT_ONCE) return trigger;
    const issue = await forge.issue(number).catch((error: unknown) => {
      if (error instanceof ForgeError && error.kind === "missing") return undefined;
      throw error;
    });
    if (!issue) return move(id, { state: "ignored", reason: "the issue is gone" });
    // The forge redirects to the new place of a moved issue.
    if (issue.number !== number) return move(id, { state: "ignored", reason: "the issue was moved to another repository" });
    if (!issue.isOpen) return move(id, { state: "ignored", reason: "the issue was closed before IO came to it" });
    if (kind === "label" && watch.label !== null && !isLabelled(issue, watch.label))
      return move(id, { state: "ignored", reason: "the label was taken off before IO came to it" });
    return move(id, { state: "claiming", run: newRun() });
  }

  /** Whether a run for the issue is active or its pull request is open. */
  function isUnderWay({ state, run }: TriggerRow): boolean {
    if (["claiming", "starting", "working"].includes(state)) return true;
    return state === "done" && pullRows.ofOwner(run ?? "")?.state === "open";
  }

  /** Comments on the issue that IO works on it. If several IOs watch the repository, the first to comment does the work. */
  async function claim(forge: Forge, trigger: TriggerRow): Promise<TriggerRow> {
    const { id, number, watch } = trigger;
    await sayOnce(forge, number, claimMark(trigger), claimText(trigger));
    const canWrite = createPermissions(forge);
    for (const { body, author } of await forge.comments(number)) {
      const by = claimIn(body, trigger);
      if (by === undefined || !(await canWrite(author))) continue;
      if (by === watch) break;
      return move(id, { state: "elsewhere", run: null, reason: `another IO works on it: it said so first, as ${author}` });
    }
    return move(id, { state: "starting" });
  }

  async function start(watch: WatchRow, forge: Forge, trigger: TriggerRow): Promise<TriggerRow> {
    const { id, run } = trigger;
    if (run === null) return move(id, { state: "failed", reason: "it has no run" });
    if (findRun(run) === undefined) {
      const { projectPath, squad } = watch;
      const base = await freshBase(projectPath, forge);
      if (pullRows.ofOwner(run) === undefined) await pulls.plan({ id: run, projects: [projectPath] }, {});
      try {
        await startRun({ id: run, projectPath, squad, issue: issueRequest(trigger), base });
      } catch (error) {
        pulls.forget(run);
        throw error;
      }
    }
    return move(id, { state: "working" });
  }

  async function finish(forge: Forge, trigger: TriggerRow): Promise<TriggerRow> {
    const { id, run } = trigger;
    const found = findRun(run ?? "");
    if (found && !found.isOver) return trigger;
    const pull = pullRows.ofOwner(run ?? "");
    if (found && pull && !isSettled(pull.state)) return trigger;
    if (pull && pull.number !== null && ["open", "merged", "closed"].includes(pull.state))
      return move(id, { state: "done", reason: `pull request #${pull.number}: ${pull.url}` });
    return giveUp(forge, trigger, whyNot(found, pull));
  }

  /** Comments on the issue, once, that IO has given it up. */
  async function giveUp(forge: Forge, trigger: TriggerRow, reason: string): Promise<TriggerRow> {
    const unsaid = await sayIfTaken(forge, trigger.number, `end-${trigger.id}`, failureText(trigger, reason));
    return move(trigger.id, { state: "failed", reason: unsaid === undefined ? reason : `${reason}; ${unsaid}` });
  }

  return { step, giveUp };
}
export type IssueWork = ReturnType<typeof createIssueWork>;

function whyNot(run: WatchedRun | undefined, pull: PullRow | undefined): string {
  if (!run) return "its run is gone";
  return pull?.reason ? `${run.end}; ${pull.reason}` : run.end;
}
