import { expect, test } from "vitest";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import { isAfterTool, lastUserText } from "../support/model.ts";
import { ownNamesIn } from "../support/own-names.ts";
import { roleOf, startSwarm } from "../support/swarm/index.ts";

const FACT = "BLUE-7731";
const ROUNDS = 14;
const YAML = `
pipeline:
  - phase: implement
    parallel: true
    agent: engineer
    reviews: [{agent: eng-code-reviewer, maxIterations: ${ROUNDS}, approvalKeyword: APPROVED}]
`;
const isSummary = (text: string) => /detailed summary of the conversation so far/.test(text);
const long = (round: number) => `finding ${round}: ${"alpha beta gamma delta ".repeat(350)}`;

test("an engineer whose stream goes on over several windows knows what its reviewer said once, though nobody repeats it", {
  timeout: 240_000,
}, async () => {
  let reviews = 0;
  const { swarm, model, project, settings } = await startSwarm({
    files: { "swarm.config.yaml": YAML },
    window: 16_384,
    env: { PRIMARY_MODEL: "scripted", REVIEW_MODEL: "scripted" },
    script({ role, request, prompt }) {
      // The model says the fact only if it was given it to summarise.
      if (isSummary(prompt)) return { say: prompt.includes(FACT) ? `The port is ${FACT}.` : "They worked." };
      if (role === "eng-code-reviewer") {
        reviews += 1;
        if (reviews > ROUNDS) return { say: "Good.\n\nAPPROVED" };
        return { say: reviews === 1 ? `${long(1)} The port must be ${FACT}.` : long(reviews) };
      }
      if (role !== "engineer") return undefined;
      if (isAfterTool(request)) return { say: "Done." };
      const path = `work-${reviews}.txt`;
      return { call: [{ tool: "file_ops", args: { operation: "write", path, content: `round ${reviews}\n` } }] };
    },
  });
  const run = await (await swarm.start({ projectPath: project, issue: "Serve", settings })).finished;
  expect(run.outcome).toBe("approved");
  const summaries = model.requests.filter((request) => isSummary(lastUserText(request)));
  expect(summaries.length).toBeGreaterThan(3);
  const asked = model.requests.filter((request) => roleOf(request) === "engineer" && !isSummary(lastUserText(request)));
  expect(lastUserText(asked.at(-1)!)).not.toContain(FACT);
  expect(asked.at(-1)!.messages.map(textOf).join("\n")).toContain(FACT);
  // No prompt contains a name that only the code knows.
  for (const { messages } of [asked[0]!, asked.at(-1)!, summaries[0]!])
    expect(ownNamesIn(messages.map(textOf).join("\n"))).toEqual([]);
});
