import { z } from "zod";
import { phaseKind } from "../../../src/swarm/phases/kind.ts";
import { AgentName, Condition } from "../../../src/swarm/pipeline/schema.ts";
import { RunFailed } from "../../../src/swarm/steps/journal.ts";
import { draftKey } from "../../../src/swarm/steps/keys.ts";

const name = "note";

/** A kind of phase that is not shipped: an agent writes a release note. */
export const note = phaseKind({
  name,
  needs: "implement",
  schema: z.strictObject({
    phase: z.literal(name),
    agent: AgentName,
    mustMention: z.string().optional(),
    condition: Condition.optional(),
  }),
  members: ({ agent }) => [{ name: agent, duty: "plan", label: "notes" }],
  mostCalls: () => 1,
  async run(context, { id, agent, mustMention = "" }, progress) {
    const reply = await context.caller.ask({
      key: draftKey(id, agent),
      phase: id,
      agent,
      duty: "plan",
      model: context.pipeline.primaryModel,
      cwd: context.workplace.workspace.cwd,
      prompt: `Write a release note for ${progress.streams.length} streams.`,
    });
    if (!reply.ok) throw new RunFailed(`note: ${agent} gave no note: ${reply.reason}`);
    if (!reply.text.includes(mustMention)) throw new RunFailed(`note: ${agent} did not mention ${mustMention}`);
    context.documents.write("release-note.md", `Note by ${agent}`, reply.text, context.served(id));
    return progress;
  },
  documents: () => ["release-note.md"],
  askAgain: (_, steps) => steps.filter((step) => step.kind === "call"),
});
