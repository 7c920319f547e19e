import { z } from "zod";
import { applyBranch } from "../../git/apply.ts";
import type { Git } from "../../git/command.ts";
import { diffOf } from "../../git/diff.ts";
import { openRepo } from "../../git/repository.ts";
import { conflict, missing } from "../../lib/errors.ts";
import { CheckEvidence, type Run, type RunDiff, type RunStepDetail } from "../../protocol/runs.ts";
import { stepOf } from "../../store/runs.ts";
import type { RunRecords } from "./records.ts";
import { Reply } from "./reply.ts";
import { readResult } from "./stored.ts";

export interface InspectDeps {
  records: Pick<RunRecords, "known" | "view" | "status" | "runs">;
  git: Git;
}

/** What a person looks at who wants to know a run in detail, and takes its result. */
export function createInspect({ records, git }: InspectDeps) {
  return {
    /** One step with everything that was said in it. */
    step(id: string, key: string): RunStepDetail {
      const { runs } = records;
      const row = runs.step(records.known(id).id, key);
      if (!row) throw missing("This run has no such step.");
      const reply = row.kind === "call" ? readResult(Reply, row) : undefined;
      const evidence = row.kind === "checks" ? readResult(z.array(CheckEvidence), row) : undefined;
      return {
        ...stepOf(row),
        prompt: runs.prompt(id, key),
        reply: reply === undefined ? null : reply.ok ? reply.text : reply.reason,
        evidence: evidence ?? [],
      };
    },

    /** What a run, or one stream of it, changed since the commit it began from. */
    async diff(id: string, stream?: number): Promise<RunDiff> {
      const { projectPath, base, tree, branch, streams } = records.view(id);
      const part = streams.find(({ number }) => number === stream);
      if (stream !== undefined && !part) throw missing("This run has no such stream.");
      const to = part ? (part.tree ?? part.branch) : (tree ?? branch);
      if (base === null || to === null) throw conflict("There is nothing to compare yet, or the work was done in place.");
      const known = await git.run(projectPath, ["cat-file", "-e", `${to}^{tree}`]);
      if (known.code !== 0) throw missing("The repository no longer holds what this run made; it was cleaned away.");
      return { from: base, to, text: await diffOf(git, projectPath, base, to, { most: 1_000_000 }) };
    },

    /** Merges an approved result into the checkout, or says why it was not. */
    async apply(id: string): Promise<Run> {
      const row = records.known(id);
      if (row.applied) return records.view(id);
      if (records.status(row) === "running") throw conflict("This run is still at work.");
      if (row.outcome !== "approved") throw conflict("Not everything in this run is approved, so its result is not merged.");
      if (row.branch === null || row.base === null) throw conflict("The work was done in place, so it is there already.");
      const repo = await openRepo(git, row.project_path);
      if (!repo) throw conflict("The project is no longer a git repository.");
      const notes = `refs/swarm/${id}/applying`;
      const not = await applyBranch({ repo, branch: row.branch, base: row.base, notes });
      if (not) throw conflict(`The result was not merged: ${not.why}. By hand: ${not.commands.join("; ")}`);
      records.runs.setApplied(id);
      return records.view(id);
    },
  };
}
export type Inspect = ReturnType<typeof createInspect>;
