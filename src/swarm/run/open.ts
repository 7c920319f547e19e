import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { unwrapped } from "../../process/sandbox.ts";
import { type RunRow, type Runs, type StepRow, stepOf } from "../../store/runs.ts";
import type { LoadedPipeline } from "../pipeline/file.ts";
import type { Inputs } from "../pipeline/inputs.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { createChecks } from "../streams/checks.ts";
import { createCaller } from "./caller.ts";
import type { RunContext } from "./context.ts";
import type { SwarmDeps } from "./deps.ts";
import { openDocuments } from "./documents.ts";
import { createJournal, recorders } from "./journal.ts";
import { servingAmong } from "./models.ts";
import { openers } from "./prefetch.ts";
import { servedLine } from "./served.ts";
import { openRunWorkplace } from "./workplace.ts";

/** One life of a run. */
export interface RunLife {
  row: RunRow;
  loaded: LoadedPipeline;
  inputs: Inputs;
  settings: RunSettings;
  signal: AbortSignal;
  tell: RunContext["tell"];
}

type Parts = Omit<SwarmDeps, "store" | "shipped"> & { runs: Runs; now: () => Date };

/** Opens what the phases of a run work with: its folder, its journal, its place in the project, and the agents. */
export async function openRun(parts: Parts, { row, loaded, inputs, settings, signal, tell }: RunLife): Promise<RunContext> {
  const { engine, emit, bind, findChecks, runsFolder, onSay, recordUsage, runs, now } = parts;
  const { checkDeadlineMs = 600_000, wrap = unwrapped, env = process.env } = parts;
  const { id } = row;
  const { pipeline, agents } = loaded;
  const serving = servingAmong(inputs.models);
  const folder = join(runsFolder, id);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const documents = openDocuments({ projectPath: row.project_path, docDir: settings.docDir, folder, now });
  const conversation = row.conversation ?? undefined;
  const journal = createJournal({ runs, runId: id, life: row.lives, emit, conversation, signal, now });
  const caller = createCaller({
    engine,
    bind,
    journal,
    runs,
    agents,
    serving,
    settings,
    signal,
    recordUsage,
    ...(onSay && { onSay }),
  });
  const workplace = await openRunWorkplace(runs, row, pipeline, settings, {
    folder,
    onPlace: (cwd) => caller.expect(openers(pipeline, pipeline.pipeline[0], cwd)),
  });
  const record = recorders(journal);
  // In a later life the run's own documents are among the changes.
  if (row.lives === 1 && workplace.kind === "branch" && workplace.repo.dirty && workplace.repo.head !== null) {
    record.note("the checkout has uncommitted changes; the run works from the last commit and does not see them");
  }
  return {
    runId: id,
    pipeline,
    agents,
    settings,
    journal,
    caller,
    checks: createChecks({
      journal,
      configured: pipeline.checks,
      findChecks,
      signal,
      deadlineMs: checkDeadlineMs,
      wrap,
      env,
      now,
    }),
    documents,
    workplace,
    about: { issue: row.issue, decisions: inputs.decisions },
    signal,
    tell,
    serving,
    served: (phase, stream) => {
      const here = (step: StepRow) => step.kind === "call" && step.phase === phase && step.stream === (stream ?? null);
      const calls = runs.steps(id).filter(here);
      return servedLine(calls.map(stepOf), inputs.models);
    },
    ...record,
  };
}
