import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { filesBetween } from "../../git/rewrite.ts";
import { changedIn, restoreFiles, treeOf } from "../../git/worktrees.ts";
import type { Check } from "../../project/commands.ts";
import { hashOf, type Journal } from "../steps/journal.ts";
import { IMPLEMENT, runKeys } from "../steps/keys.ts";
import type { BranchWorkplace } from "../workspace/workspace.ts";
import { baselineNotes, passesBrokenCodeNote } from "./check-notes.ts";
import { inBaseTree, Trial, tryChecks } from "./trial.ts";
import { CheckRecord, canNotice, isGreen, type Noticed, sameCheck } from "./verdicts.ts";

export interface PackageAssessmentDeps {
  journal: Journal;
  workplace: BranchWorkplace;
  note: (text: string) => void;
  signal: AbortSignal;
}

/** Where a check runs on the base commit. */
export interface BaseFolder {
  folder: string;
  tree: string;
  changed: () => Promise<{ files: string[]; clean: boolean }>;
  restore: (files: readonly string[]) => Promise<void>;
}

/**
 * Assesses the checks of single packages. Which of them a run needs is known only after changes, so each is tried on the base
 * commit when needed: its result there once it fails, and whether it notices broken code once it has run.
 */
export function createPackageAssessment({ journal, workplace, note, signal }: PackageAssessmentDeps) {
  const { repo, baseTree } = workplace;
  const before = new Map<string, Promise<CheckRecord | undefined>>();
  const noticed: Noticed[] = [];
  let turn: Promise<unknown> = Promise.resolve();
  /** One at a time, because they share the folder of the base tree. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = turn.then(work);
    turn = mine.catch(() => undefined);
    return mine;
  }

  async function runOnBase(check: Check, run: (at: BaseFolder) => Promise<CheckRecord>): Promise<CheckRecord | undefined> {
    const head = { key: `${runKeys.baseline}/${idOf(check)}`, kind: "checks" as const, phase: IMPLEMENT };
    const inputs = { tree: baseTree, command: check.command };
    const [record] = await journal.step(z.array(CheckRecord), head, inputs, () =>
      inBaseTree(workplace, async (path) => {
        const folder = join(path, repo.prefix);
        // A new package has no earlier result to compare with.
        if (check.packages?.some((each) => !existsSync(join(folder, each)))) return { value: [], verdict: "new" };
        const tree = treeOf(repo, path, "");
        const at = {
          folder,
          tree: baseTree,
          changed: () => changedIn(tree),
          restore: (files: readonly string[]) => restoreFiles(tree, files),
        };
        const value = await run(at);
        return { value: [value], verdict: value.verdict ?? "passed" };
      }),
    );
    for (const each of baselineNotes(record && !isGreen(record) ? [record] : [])) note(each);
    return record;
  }

  return {
    note,
    /** The project's files that differ from the base; undefined if files outside the project differ too, or none do. */
    async changed(tree: string): Promise<string[] | undefined> {
      const files = await filesBetween(repo.git, repo.root, baseTree, tree);
      const own = repo.prefix === "" ? files : files.filter((file) => file.startsWith(`${repo.prefix}/`));
      if (own.length === 0 || own.length < files.length) return undefined;
      return repo.prefix === "" ? own : own.map((file) => file.slice(repo.prefix.length + 1));
    },
    /** A check's result on the commit that the run began from. */
    before(check: Check, run: (at: BaseFolder) => Promise<CheckRecord>): Promise<CheckRecord | undefined> {
      const known = before.get(idOf(check)) ?? inTurn(() => runOnBase(check, run));
      before.set(idOf(check), known);
      return known;
    },
    /** Whether each check notices broken code. A failed check is represented by its result on the base commit. */
    async notices(
      checks: readonly Check[],
      ran: readonly CheckRecord[],
      run: (check: Check, folder: string) => Promise<CheckRecord>,
    ): Promise<readonly Noticed[]> {
      const records = await Promise.all(
        checks.map(async (check) => {
          const own = sameCheck(ran, check);
          return own && isGreen(own) ? own : before.get(idOf(check));
        }),
      );
      await inTurn(async () => {
        const able = records.filter((each) => each !== undefined && canNotice(each)) as CheckRecord[];
        const untried = able.filter(
          (each) => !noticed.some(({ name, command }) => name === each.name && command === each.command),
        );
        if (untried.length === 0) return;
        const key = `${runKeys.trial}/${hashOf(untried.map(({ name, command }) => [name, command])).slice(0, 12)}`;
        const head = { key, kind: "git" as const, phase: IMPLEMENT };
        const trial = await journal.step(Trial, head, { tree: baseTree }, async () => {
          const again = (record: CheckRecord, folder: string) => run(sameCheck(checks, record)!, folder);
          const value = await tryChecks({ workplace, checks: untried, run: again, signal });
          return { value, verdict: value.files === 0 ? "nothing to break" : "tried" };
        });
        for (const each of trial.noticed) {
          noticed.push(each);
          if (!each.noticed) note(passesBrokenCodeNote(each.name, trial.files));
        }
      });
      return noticed;
    },
  };
}
export type PackageAssessment = ReturnType<typeof createPackageAssessment>;

const idOf = ({ name, command, cwd }: Check) => hashOf([name, command, cwd]).slice(0, 12);
