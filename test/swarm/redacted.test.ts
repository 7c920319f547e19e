import { expect, test } from "vitest";
import { createRedactor } from "../../src/lib/redact.ts";
import { startSwarm } from "../support/swarm/index.ts";

test("a secret that a check prints reaches no prompt, no record and no document", async () => {
  const secret = "hush-hush-0123456789";
  const { swarm, project, settings, model, store } = await startSwarm({
    checks: [{ name: "leak", command: `echo the key is ${secret.slice(0, 9)}"${secret.slice(9)}"; exit 1`, cwd: "." }],
    parts: { redactor: createRedactor([secret]) },
  });
  const { finished } = await swarm.start({ projectPath: project, issue: "Greet", settings });
  const run = await finished;
  expect(run.evidence.map(({ tail }) => tail)).toContainEqual(expect.stringContaining("the key is [secret]"));
  expect(JSON.stringify(run)).not.toContain(secret);
  expect(model.bodies.join("\n")).not.toContain(secret);
  expect(model.bodies.join("\n")).toContain("the key is [secret]");
  expect(JSON.stringify(store.db.prepare("SELECT * FROM run_steps").all())).not.toContain(secret);
});
