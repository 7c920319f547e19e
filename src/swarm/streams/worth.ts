import type { CheckEvidence } from "../../protocol/runs.ts";
import type { RunContext } from "../run/context.ts";
import { IMPLEMENT, runKeys } from "../run/keys.ts";
import { isGreen } from "./baseline.ts";
import type { Worth } from "./checks.ts";
import { Trial, tryChecks } from "./trial.ts";

/** Finds out what the project's checks are worth before anything is changed: what they say of it now, and whether they see it. */
export async function findWorth(context: RunContext, baseTree: string): Promise<Worth> {
  const { checks, journal, workplace, signal, note } = context;
  if (workplace.kind === "branch") await workplace.installed;
  const { workspace } = workplace;
  const baseline = await checks.baseline({
    phase: IMPLEMENT,
    folder: workspace.cwd,
    changed: workspace.changed,
    tree: baseTree,
    after: async () => workspace.tidy?.(`base-${baseTree.slice(0, 12)}`),
  });
  for (const each of baseline.filter((one) => !isGreen(one))) note(beforeTheRun(each));
  const green = baseline.filter(isGreen);
  if (workplace.kind !== "branch" || green.length === 0) return { baseline, notices: new Map() };
  const head = { key: runKeys.trial, kind: "git" as const, phase: IMPLEMENT };
  const { files, noticed } = await journal.step(Trial, head, { tree: baseTree }, async () => {
    const run = async (check: CheckEvidence, folder: string) => (await checks.again(check, folder)) ?? check;
    const value = await tryChecks({ workplace, checks: green, run, signal });
    return { value, verdict: value.files === 0 ? "nothing to break" : "tried" };
  });
  if (files === 0) note("the project has no source file that a check could import, so its checks count as they are");
  for (const { name } of noticed.filter((each) => !each.noticed)) note(notBound(name, files));
  return { baseline, notices: new Map(noticed.map((each) => [each.name, each.noticed])) };
}

function beforeTheRun({ name, excused }: CheckEvidence): string {
  if (excused === "cannot run")
    return `the check "${name}" cannot run here: a program that it needs is missing. Install it, or name the checks in the pipeline file`;
  return excused === "failed before"
    ? `the check "${name}" failed before the run began; only what fails besides is held against the run`
    : `the check "${name}" failed before the run began and does not say why, so it has to pass in the end`;
}

function notBound(name: string, files: number): string {
  return `the check "${name}" also passes when the code is broken (${files} file${files === 1 ? " was" : "s were"} broken for a trial): it runs code from elsewhere, such as the checkout's by a project that is installed in place, or none. It is no evidence`;
}
