import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { modelCalls, obedient } from "../support/orchestrator.ts";
import { soon } from "../support/soon.ts";
import { swarm } from "../support/swarm/command.ts";
import { yamlBombs } from "../support/yaml-bombs.ts";

/** A daemon that parsed YAML on its only thread would not answer for seconds, or ever. */
const SOON_MS = 1_500;

const home = temporaryHome({}, afterAll);
const model = await scriptedModel(obedient, {}, afterAll);
const daemon = await startDaemonProcess(home, providerEnvironment(model.url), afterAll);
const project = temporaryFolder(afterAll);

/** The longest time that a health check took while the work was going on, in milliseconds. */
async function slowestDuring(work: Promise<unknown>): Promise<number> {
  let slowest = 0;
  let isOver = false;
  const end = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const before = performance.now();
    await (await daemon.fetch("/api/health")).arrayBuffer();
    slowest = Math.max(slowest, performance.now() - before);
  }
  await end;
  return slowest;
}

test.each(Object.entries(yamlBombs(200_000)))(
  "a pipeline of %s is refused, and the daemon answers meanwhile",
  async (_, yaml) => {
    const checked = daemon.json<{ valid?: boolean; problems?: unknown[] }>("POST", "/api/runs/validate", { yaml });
    expect(await slowestDuring(checked)).toBeLessThan(soon(SOON_MS));
    expect(await checked).toMatchObject({ valid: false, problems: expect.arrayContaining([expect.anything()]) });
  },
);

test.each(Object.entries(yamlBombs(8_000)))("a skill, an agent and a package of %s harm nobody", async (what, yaml) => {
  const slug = what.replace(/\W+/g, "-");
  mkdirSync(join(home, "skills", slug), { recursive: true });
  writeFileSync(join(home, "skills", slug, "SKILL.md"), `---\n${yaml}\n---\n# Named all the same\n`);
  mkdirSync(join(project, ".github", "agents", slug), { recursive: true });
  writeFileSync(join(project, "pubspec.yaml"), yaml);
  writeFileSync(join(project, ".github", "agents", "pm.md"), `---\n${yaml}\n---\nPlan.\n`);
  const { read } = await modelCalls(daemon, model, "squad_analyze", { project_path: project });
  expect(read).toContain("pubspec.yaml");
  const ended = await swarm(["validate"], project, { PATH: process.env.PATH, HOME: home, IO_HOME: home });
  expect([0, 2]).toContain(ended.code);
  expect(daemon.child.exitCode).toBeNull();
});
