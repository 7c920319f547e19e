import { z } from "zod";
import { current } from "../../git/repository.ts";
import type { ImplementPhase } from "../pipeline/schema.ts";
import type { Progress, RunContext } from "../run/context.ts";
import { runStreams } from "../streams/streams.ts";

/** Makes every task real. */
export async function runImplement(context: RunContext, phase: ImplementPhase, progress: Progress): Promise<Progress> {
  const tasks =
    progress.tasks.length > 0
      ? progress.tasks
      : [
          {
            id: "T1",
            text: progress.spec ? "Build what the specification says." : "Build what the request asks for.",
            acceptanceCriteria: [],
            dependsOn: [],
            frontend: false,
          },
        ];
  const streams = await runStreams(context, phase, { ...progress, tasks });
  return { ...progress, tasks, streams, tree: await presentTree(context, "implement/result", streams) };
}

/** The tree the run has come to, written down. */
export async function presentTree({ journal, workplace }: RunContext, key: string, after: unknown): Promise<string> {
  return journal.step(z.string(), { key, kind: "git", phase: key.split("/")[0]! }, { after }, async () => ({
    value:
      workplace.kind === "branch"
        ? (await current(workplace.workspace.path, workplace.branch)).tree
        : (await workplace.workspace.save("")).tree,
  }));
}
