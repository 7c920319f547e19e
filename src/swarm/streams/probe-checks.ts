import { baselineNotes, passesBrokenCodeNote } from "../checks/check-notes.ts";
import type { ProbedChecks } from "../checks/checks.ts";
import { Trial, tryChecks } from "../checks/trial.ts";
import { type CheckRecord, canNotice, isGreen } from "../checks/verdicts.ts";
import type { RunContext, RunPart } from "../context/context.ts";
import { IMPLEMENT, runKeys } from "../steps/keys.ts";

/** Probes the project's checks before anything is changed: their results on the base, and whether they notice broken code. */
export async function probeChecks(
  context: Pick<RunContext, "requireChecks" | "signal"> & RunPart,
  baseTree: string,
): Promise<ProbedChecks> {
  const { checks, journal, workplace, signal, note } = context;
  if (workplace.kind === "branch") await workplace.installed;
  const { workspace } = workplace;
  const baseline = await checks.baseline({
    everything: context.requireChecks,
    phase: IMPLEMENT,
    folder: workspace.cwd,
    changed: workspace.changed,
    restore: workspace.restore,
    tree: baseTree,
    after: async () => workspace.tidy?.(`base-${baseTree.slice(0, 12)}`),
  });
  for (const each of baselineNotes(baseline.filter((one) => !isGreen(one)))) note(each);
  const able = baseline.filter(canNotice);
  if (workplace.kind !== "branch" || able.length === 0) return { baseline, notices: [] };
  const head = { key: runKeys.trial, kind: "git" as const, phase: IMPLEMENT };
  const { files, noticed } = await journal.step(Trial, head, { tree: baseTree }, async () => {
    const run = async (check: CheckRecord, folder: string) => (await checks.again(check, folder)) ?? check;
    const value = await tryChecks({ workplace, checks: able, run, signal });
    return { value, verdict: value.files === 0 ? "nothing to break" : "tried" };
  });
  if (files === 0) note("the project has no source file that a check could import, so its checks count as they are");
  for (const { name } of noticed.filter((each) => !each.noticed)) note(passesBrokenCodeNote(name, files));
  return { baseline, notices: noticed };
}
