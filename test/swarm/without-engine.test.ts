import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Run } from "../../src/protocol/runs.ts";
import { openStore } from "../../src/store/open.ts";
import { openRuns } from "../../src/store/runs.ts";
import { cleanEnvironment } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { swarm } from "../support/swarm/command.ts";
import { makeProject } from "../support/swarm/index.ts";

/** A home that contains an interrupted run. */
function homeWithRun(config: Record<string, unknown> = {}): string {
  const home = temporaryHome(config);
  const store = openStore(join(home, "io.db"));
  const inputs = JSON.stringify({ models: [], unattended: false });
  openRuns(store).create({ id: "r_old", projectPath: "/somewhere", issue: "Greet", inputs, now: "2030-01-01T00:00:00.000Z" });
  store.close();
  return home;
}

async function expectToWork(home: string, project: string, env: NodeJS.ProcessEnv): Promise<void> {
  expect(await swarm(["list"], project, env)).toMatchObject({ code: 0, stdout: expect.stringContaining("r_old") });
  expect(await swarm(["show", "r_old"], project, env)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("Issue: Greet"),
  });
  expect(await swarm(["validate"], project, env)).toMatchObject({ code: 0, stdout: expect.stringContaining("is in order") });
  expect(JSON.parse((await swarm(["cancel", "r_old", "--json"], project, env)).stdout) as Run).toMatchObject({
    status: "cancelled",
  });
  expect(existsSync(join(home, "sessions", "runtime.pid"))).toBe(false);
}

test("list, show, validate and cancel do not ask Ollama, and work without a runtime", async () => {
  let asked = 0;
  const ollama = createServer((_, response) => {
    asked += 1;
    response.end("{}");
  });
  await new Promise<void>((ready) => ollama.listen(0, "127.0.0.1", ready));
  onTestFinished(() => void ollama.close());
  const home = homeWithRun({ ollamaUrl: `http://127.0.0.1:${(ollama.address() as AddressInfo).port}` });
  const env = cleanEnvironment(home, { COPILOT_CLI_PATH: join(temporaryFolder(), "no-runtime-here") });
  await expectToWork(home, makeProject(), env);
  expect(asked).toBe(0);
});

test("list, show, validate and cancel work with provider settings that are wrong", async () => {
  const home = homeWithRun();
  const env = cleanEnvironment(home, { IO_ENGINE: "nonsense", COPILOT_PROVIDER_BASE_URL: "no address" });
  const project = makeProject();
  expect((await swarm(["Do it"], project, env)).code).not.toBe(0);
  writeFileSync(join(home, "config.json"), '{"provider": {"type": "martian"}}', { mode: 0o600 });
  await expectToWork(home, project, env);
});

test("a folder of agents that was set and is not there is exit 2 with a sentence, for run, plan and validate; unset, it may be missing", async () => {
  const home = temporaryHome();
  const project = makeProject({ "team/pm.md": "A pm of our own." });
  const env = cleanEnvironment(home, { IO_ENGINE: "rehearsal" });
  for (const AGENTS_DIR of ["taem", ".github/agents", "README.md"])
    expect(await swarm(["validate"], project, { ...env, AGENTS_DIR })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        `AGENTS_DIR: found "${AGENTS_DIR}": ${join(project, AGENTS_DIR)} is no folder. Name the folder that holds the agents, or unset it.`,
      ),
    });
  for (const command of ["run", "plan"])
    expect(await swarm([command, "Greet"], project, { ...env, AGENTS_DIR: "taem" })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("AGENTS_DIR"),
    });
  expect(await swarm(["validate"], project, { ...env, AGENTS_DIR: "team" })).toMatchObject({ code: 0 });
  expect(await swarm(["validate"], project, env)).toMatchObject({ code: 0 });
});
