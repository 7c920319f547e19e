import { z } from "zod";
import type { CheckEvidence } from "../../protocol/runs.ts";
import type { RunContext } from "../run/context.ts";
import type { roundKeys, streamKeys } from "../run/keys.ts";
import type { Workspace } from "../run/workspace.ts";

export const SavedState = z.object({ tree: z.string(), commit: z.string().nullable() });

export interface StreamTreeDeps {
  context: RunContext;
  keys: ReturnType<typeof streamKeys>;
  /** The stream's number. */
  number: number;
  workspace: Workspace;
  /** The tree the stream began with. */
  baseTree: string;
}

export interface TreeState {
  tree: string;
  commit: string | null;
  evidence: readonly CheckEvidence[];
}

/** The working tree of one stream: what is in it is committed and checked, what commands leave behind is set aside. */
export function createStreamTree({ context, keys, number, workspace, baseTree }: StreamTreeDeps) {
  const { journal, checks } = context;
  const at = { kind: "git" as const, phase: keys.phase, stream: number };
  let state: TreeState = { tree: baseTree, commit: null, evidence: [] };
  let commits = 0;

  async function setAside(label: string): Promise<string | null> {
    const ref = (await workspace.tidy?.(label)) ?? null;
    if (ref) context.note(`stream ${number}: files that a command left in the tree were set aside as ${ref}`);
    return ref;
  }

  /** Where nothing can be set aside, what a command left becomes part of the work, and voids the approvals before it. */
  async function includeLeftovers(key: string): Promise<void> {
    if (workspace.tidy) return;
    const { tree } = await journal.step(SavedState, { ...at, key }, { from: state.tree }, async () => ({
      value: await workspace.save(""),
    }));
    if (tree !== state.tree) context.note(`stream ${number}: commands changed files in place; they are reviewed with the rest`);
    state = { ...state, tree };
  }

  return {
    cwd: workspace.cwd,
    state: () => state,
    diff: () => workspace.diff(baseTree, state.tree),
    /** Commits and checks what is in the tree now. */
    async settle(message: string): Promise<void> {
      commits += 1;
      const inputs = { turns: commits, from: state.tree };
      const saved = await journal.step(SavedState, { ...at, key: keys.commit(commits) }, inputs, async () => ({
        value: await workspace.save(message),
      }));
      // Reviewers need the diff: it is made while the checks run, and whoever reads it meets the failure, if any.
      workspace.diff(baseTree, saved.tree).catch(() => undefined);
      const evidence = await checks.run({
        prefix: keys.prefix,
        phase: keys.phase,
        stream: number,
        folder: workspace.cwd,
        tree: saved.tree,
        after: () => setAside(`checks-${commits}`),
      });
      state = { ...saved, evidence };
      await includeLeftovers(keys.afterChecks(commits));
    },
    /** Deals with what a tester left in the tree. */
    async afterTester(round: number, { tidy, after }: ReturnType<typeof roundKeys>): Promise<void> {
      if (workspace.tidy)
        await journal.step(z.string().nullable(), { ...at, key: tidy }, {}, async () => ({
          value: await setAside(`qa-${round}`),
        }));
      await includeLeftovers(after);
    },
  };
}
export type StreamTree = ReturnType<typeof createStreamTree>;
