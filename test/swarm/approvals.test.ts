import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Run } from "../../src/protocol/runs.ts";
import { asked, decide } from "../support/approvals.ts";
import type { TestDaemon } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { daemonOn, project } from "../support/squads.ts";
import { play, sh } from "../support/swarm/index.ts";
import { ON_BRANCH } from "../support/swarm/pipelines.ts";
import { until } from "../support/until.ts";

const COMMAND = "echo once >> counted.txt";

/** A daemon that asks before every effect, and a run whose engineer wants to run one command. */
async function askedInRun() {
  const home = temporaryHome();
  writeFileSync(join(home, "config.json"), JSON.stringify({ approvals: "effects" }));
  const folder = project({ "swarm.config.yaml": ON_BRANCH, "README.md": "A project.\n", Makefile: "test:\n\t@true\n" });
  const model = await scriptedModel(play(({ role, afterTool }) => (role === "engineer" && !afterTool ? sh(COMMAND) : undefined)));
  const daemon = await daemonOn(model, home);
  const { id } = await daemon.json<Run>("POST", "/api/runs", { projectPath: folder, issue: "Count" });
  const [question] = await asked(daemon);
  expect(question).toMatchObject({ owner: { kind: "run", id }, tool: "shell", command: COMMAND, state: "waiting" });
  return { home, folder, model, daemon, id, question: question! };
}

const ended = (daemon: TestDaemon, id: string) =>
  until(
    `the end of ${id}`,
    async () => {
      const run = await daemon.json<Run>("GET", `/api/runs/${id}`);
      return run.status === "running" || run.status === "interrupted" ? undefined : run;
    },
    60_000,
  );

test("what a run asks for outlives a kill, is the same question after it, and runs once when it is allowed", async () => {
  const { home, folder, model, daemon, id, question } = await askedInRun();
  await daemon.kill("SIGKILL");
  const again = await daemonOn(model, home);
  const [same] = await asked(again);
  expect(same).toEqual(question);
  expect((await decide(again, question.id, { decision: "allow" })).status).toBe(200);
  expect((await decide(again, question.id, { decision: "deny" })).status).toBe(409);
  const run = await ended(again, id);
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(execFileSync("git", ["show", `${run.branch}:counted.txt`], { cwd: folder, encoding: "utf8" })).toBe("once\n");
  expect(await asked(again, 0)).toEqual([]);
});

test("what a run is denied never ran: its engineer is told why, and a run that changed nothing is not approved", async () => {
  const { model, daemon, id, question } = await askedInRun();
  expect((await decide(daemon, question.id, { decision: "deny", note: "not on a Monday" })).status).toBe(200);
  const run = await ended(daemon, id);
  expect(run.outcome).toBe("unchanged");
  expect(JSON.stringify(model.requests)).toContain("not on a Monday");
});

test("cancelling a run withdraws what it asked", async () => {
  const { daemon, id, question } = await askedInRun();
  await daemon.json("POST", `/api/runs/${id}/cancel`);
  expect((await ended(daemon, id)).status).toBe("cancelled");
  await until("the question to be withdrawn", async () => {
    const now = await daemon.json<{ state: string }>("GET", `/api/approvals/${question.id}`);
    return now.state === "withdrawn";
  });
});
