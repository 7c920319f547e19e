import { z } from "zod";
import type { Progress, RunContext } from "../context.ts";
import type { ImplementPhase } from "../pipeline/schema.ts";
import { runStreams } from "../streams.ts";
import { current } from "../tree/git.ts";

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
export async function presentTree({ journal, ground }: RunContext, key: string, after: unknown): Promise<string> {
  return journal.step(z.string(), { key, kind: "git", phase: key.split("/")[0]! }, { after }, async () => ({
    value:
      ground.kind === "branch"
        ? (await current(ground.workspace.path, ground.branch)).tree
        : (await ground.workspace.save("")).tree,
  }));
}
