import { checkWords } from "../../protocol/check-words.ts";
import type { CheckEvidence } from "../../protocol/runs.ts";

/** Tells people about a check that does not pass on the commit the run began from. */
export function baselineNote(each: CheckEvidence): string {
  const check = `the check "${each.name}"`;
  if (each.verdict === "could not run")
    return `${check} cannot run here: ${each.why}. Install what it needs, or name the checks in the pipeline file`;
  if (each.verdict === "flaky") return `${check} is ${checkWords(each)}`;
  const which = each.why ? ` (${each.why})` : "";
  return `${check} failed before the run began${which}; only what fails besides is held against the run`;
}

/** Tells people about a check that passes on broken code. */
export function passesBrokenCodeNote(name: string, files: number): string {
  return `the check "${name}" also passes when the code is broken (${files} file${files === 1 ? " was" : "s were"} broken for a trial): it runs code from elsewhere, such as the checkout's by a project that is installed in place, or none. It is no evidence`;
}
