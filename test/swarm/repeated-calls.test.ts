import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import { temporaryFolder } from "../support/home.ts";
import { type Script, sh, startSwarm } from "../support/swarm/index.ts";

const YAML = "pipeline:\n  - {phase: implement, parallel: true, agent: engineer}\n";

/** The tool results after the last prompt. */
const resultsSince = ({ request }: Parameters<Script>[0]) => {
  const asked = request.messages.findLastIndex(({ role }) => role === "user");
  return request.messages.slice(asked + 1).filter(({ role }) => role === "tool");
};

test.each([1, 2])(
  "a step whose first attempt came to nothing does not repeat what that did %i times in the same session",
  { timeout: 120_000 },
  async (times) => {
    const marker = join(temporaryFolder(), "marker");
    const told: string[] = [];
    const answers: string[][] = [];
    const script: Script = (turn) => {
      if (turn.role !== "engineer") return undefined;
      const results = resultsSince(turn);
      if (results.length === 0) told.push(turn.prompt);
      // It starts from the beginning, whatever it is told.
      if (results.length < times) return sh(`echo ran | tee -a ${marker} work.txt`);
      answers.push(results.map(textOf));
      return answers.length === 1 ? { empty: true } : { say: "Done." };
    };
    const { swarm, project, settings } = await startSwarm({ script, files: { "swarm.config.yaml": YAML } });
    const run = await (await swarm.start({ projectPath: project, issue: "Do it", settings })).finished;
    expect(run.status).toBe("done");
    expect(run.steps.find(({ key }) => key === "implement/stream-1/draft")).toMatchObject({ attempts: 2 });
    expect(readFileSync(marker, "utf8")).toBe("ran\n".repeat(times));
    // The second attempt is told what the first one did, and gets the same answers.
    expect(told[1]).toMatch(/Your last turn ended early[\s\S]*cut off[\s\S]*shell[\s\S]*echo ran/);
    expect(answers[1]).toEqual(answers[0]);
  },
);
