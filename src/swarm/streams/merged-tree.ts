import { z } from "zod";
import type { CheckEvidence } from "../../protocol/runs.ts";
import type { RunContext } from "../context/context.ts";
import { hashOf } from "../steps/journal.ts";
import { RUN_CHECKS, type roundKeys } from "../steps/keys.ts";
import { SavedState } from "./stream-tree.ts";

/** The merged tree of all streams, while a later phase checks and changes it. */
export function openMergedTree({ journal, checks, workplace }: RunContext, phase: string, began: string) {
  const { workspace } = workplace;
  let tree = began;
  let evidence: CheckEvidence[] = [];

  async function check(): Promise<void> {
    evidence = await checks.run({
      prefix: RUN_CHECKS,
      phase,
      folder: workspace.cwd,
      changed: workspace.changed,
      restore: workspace.restore,
      tree,
      after: async () => workspace.tidy?.(`cross-${tree.slice(0, 12)}`),
    });
  }

  return {
    tree: () => tree,
    evidence: () => evidence,
    diffFrom: (base: string) => workspace.diff(base, tree),
    check,
    /** Computes the summary's statistics early, in case this is the last state. */
    precomputeSummary(base: string): void {
      if (workplace.kind === "branch") workplace.workspace.stat(base, tree).catch(() => undefined);
    },
    /** Sets aside what a tester left in the tree; where that is impossible, it becomes part of the work. */
    async afterTester({ review, after }: ReturnType<typeof roundKeys>): Promise<void> {
      const head = { key: after, kind: "git" as const, phase };
      if (workspace.tidy)
        await journal.step(z.string().nullable(), head, { tree }, async () => ({
          value: (await workspace.tidy?.(hashOf(review).slice(0, 12))) ?? null,
        }));
      else tree = (await journal.step(SavedState, head, { tree }, async () => ({ value: await workspace.save("") }))).tree;
    },
    /** Commits and checks what a fix has changed. */
    async commit(key: string, message: string): Promise<void> {
      const saved = await journal.step(SavedState, { key, kind: "git", phase }, { from: tree }, async () => ({
        value: await workspace.save(message),
      }));
      tree = saved.tree;
      await check();
    },
  };
}
