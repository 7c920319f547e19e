import { z } from "zod";
import type { CheckEvidence } from "../../protocol/runs.ts";
import type { RunContext } from "../context/context.ts";
import type { roundKeys, streamKeys } from "../steps/keys.ts";
import type { Workspace } from "../workspace/workspace.ts";

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

/** The working tree of one stream: its content is committed and checked, what commands leave behind is set aside. */
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

  /** Where nothing can be set aside, a command's leftovers become part of the work and void earlier approvals. */
  async function includeLeftovers(key: string): Promise<void> {
    if (workspace.tidy) return;
    const { tree } = await journal.step(SavedState, { ...at, key }, { from: state.tree }, async () => ({
      value: await workspace.save(""),
    }));
    if (tree !== state.tree) context.note(`stream ${number}: commands changed files in place; they are reviewed with the rest`);
    state = { ...state, tree };
  }

  function check(tree: string, keepChanged: boolean): Promise<CheckEvidence[]> {
    return checks.run({
      prefix: keys.prefix,
      phase: keys.phase,
      stream: number,
      folder: workspace.cwd,
      tree,
      changed: workspace.changed,
      restore: workspace.restore,
      keepChanged,
      after: async (evidence) => {
        if (!keepChanged || evidence.every(({ changed }) => changed === undefined)) await setAside(`checks-${commits}`);
      },
    });
  }

  /**
   * Commits the files that checks changed, then checks again. A check that changes them every time has not seen the tree it
   * vouches for.
   */
  async function commitCheckFixes(from: string): Promise<void> {
    const files = state.evidence.flatMap(({ changed = [] }) => changed);
    const saved = await journal.step(SavedState, { ...at, key: keys.mended(commits) }, { from }, async () => {
      const value = await workspace.saveChanged!("What the checks mend as they go");
      await setAside(`checks-${commits}`);
      return { value };
    });
    context.note(`stream ${number}: the checks changed ${files.slice(0, 5).join(", ")}; that is part of the work now`);
    state = { ...saved, evidence: saved.tree === from ? state.evidence : await check(saved.tree, false) };
  }

  return {
    cwd: workspace.cwd,
    state: () => state,
    diff: () => workspace.diff(baseTree, state.tree),
    /** Commits and checks what is in the tree now. Fixes that a check makes become part of the work and are checked again. */
    async commitAndCheck(message: string): Promise<void> {
      commits += 1;
      const inputs = { turns: commits, from: state.tree };
      const saved = await journal.step(SavedState, { ...at, key: keys.commit(commits) }, inputs, async () => ({
        value: await workspace.save(message),
      }));
      // Reviewers need the diff, so compute it while the checks run; its reader gets the failure, if any.
      workspace.diff(baseTree, saved.tree).catch(() => undefined);
      state = { ...saved, evidence: await check(saved.tree, true) };
      if (workspace.saveChanged && state.evidence.some(({ changed }) => changed !== undefined))
        await commitCheckFixes(saved.tree);
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
