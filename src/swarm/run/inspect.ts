import { z } from "zod";
import { applyBranch } from "../../git/apply.ts";
import type { Git } from "../../git/command.ts";
import { diffOf } from "../../git/diff.ts";
import { openRepo } from "../../git/repository.ts";
import { conflict, missing } from "../../lib/errors.ts";
import { CheckEvidence, type Run, type RunDiff, type RunStepDetail } from "../../protocol/runs.ts";
import { stepOf } from "../../store/runs.ts";
import { Reply } from "../steps/reply.ts";
import { readResult } from "../steps/stored.ts";
import { splitState } from "../workspace/companions.ts";
import type { RunRecords } from "./records.ts";

export interface InspectDeps {
  records: Pick<RunRecords, "known" | "view" | "status" | "runs">;
  git: Git;
}

/** For a person who inspects a run and merges its result. */
export function createInspect({ records, git }: InspectDeps) {
  return {
    /** One step with its prompt, reply and evidence. */
    step(id: string, key: string): Omit<RunStepDetail, "said"> {
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
      const { projectPath, base, tree, branch, streams, repositories } = records.view(id);
      const part = streams.find(({ number }) => number === stream);
      if (stream !== undefined && !part) throw missing("This run has no such stream.");
      const to = part ? (part.tree ?? part.branch) : (tree ?? branch);
      if (base === null || to === null) throw conflict("There is nothing to compare yet, or the work was done in place.");
      const known = await git.run(projectPath, ["cat-file", "-e", `${to}^{tree}`]);
      if (known.code !== 0) throw missing("The repository no longer holds what this run made; it was cleaned away.");
      const repo = repositories.length > 0 ? await openRepo(git, projectPath) : undefined;
      const { own, links } = repo ? await splitState(repo, to) : { own: to, links: new Map<number, string>() };
      const parts = [await diffOf(git, projectPath, base, own, { most: 1_000_000 })];
      for (const [index, other] of repositories.slice(0, -1).entries()) {
        const there = links.get(index + 1);
        if (there === undefined || other.base === null) continue;
        const text = await diffOf(git, other.projectPath, other.base, there, { most: 1_000_000 });
        if (text.trim() !== "") parts.push(`# The repository ${other.projectPath}:\n${text}`);
      }
      return { from: base, to, text: parts.join("\n\n") };
    },

    /** Merges an approved result into the checkout, or throws the reason why not. */
    async apply(id: string): Promise<Run> {
      const row = records.known(id);
      if (row.applied) return records.view(id);
      if (records.status(row) === "running") throw conflict("This run is still at work.");
      if (row.outcome === "untested")
        throw conflict("Nothing tested this result, so it is not merged. Look at it, and merge it yourself.");
      if (row.outcome !== "approved") throw conflict("Not everything in this run is approved, so its result is not merged.");
      if (row.branch === null || row.base === null) throw conflict("The work was done in place, so it is there already.");
      if (records.view(id).repositories.length > 0)
        throw conflict(
          `This run changed several repositories. Merge ${row.branch} in each of them yourself, or make pull requests: io pr ${id}`,
        );
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
