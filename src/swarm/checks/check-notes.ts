import { checkWords } from "../../protocol/check-words.ts";
import type { CheckEvidence } from "../../protocol/runs.ts";

/** Tells people about the checks that do not pass on the commit the run began from; what stops several of them is told once. */
export function baselineNotes(failing: readonly CheckEvidence[]): string[] {
  const stopped = new Map<string, string[]>();
  for (const { name, verdict, why = "" } of failing)
    if (verdict === "could not run") stopped.set(why, [...(stopped.get(why) ?? []), `"${name}"`]);
  const unable = [...stopped].map(([why, names]) => {
    const checks = names.length > 1 ? `checks ${names.join(", ")}` : `check ${names[0]}`;
    return `the ${checks} cannot run here: ${why}. Install what it needs, or name the checks in the pipeline file`;
  });
  return [...unable, ...failing.filter(({ verdict }) => verdict !== "could not run").map(baselineNote)];
}

function baselineNote(each: CheckEvidence): string {
  const check = `the check "${each.name}"`;
  if (each.verdict === "flaky") return `${check} is ${checkWords(each)}`;
  const which = each.why ? ` (${each.why})` : "";
  return `${check} failed before the run began${which}; only what fails besides is held against the run`;
}

/** Tells people about a check that passes on broken code. */
export function passesBrokenCodeNote(name: string, files: number): string {
  return `the check "${name}" also passes when the code is broken (${files} file${files === 1 ? " was" : "s were"} broken for a trial): it runs code from elsewhere, such as the checkout's by a project that is installed in place, or none. It is no evidence`;
}
