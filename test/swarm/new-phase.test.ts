import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PHASE_KINDS } from "../../src/swarm/phases/index.ts";
import { pipelineJsonSchema } from "../../src/swarm/pipeline/schema.ts";
import { git, type Script, startSwarm } from "../support/swarm/index.ts";
import { note } from "../support/swarm/note-phase.ts";

const kinds = [...PHASE_KINDS, note];
const YAML = (more = "") => `
pipeline:
  - {phase: implement, parallel: true, agent: engineer}
  - {phase: note, agent: pm${more}}
`;
const start = (yaml: string, script?: Script, withGit = true) =>
  startSwarm({ ...(script && { script }), git: withGit, parts: { kinds }, files: { "swarm.config.yaml": yaml } });

test("a kind of phase that is one file and one line of the list is planned, run, shown and documented like the others", async () => {
  const { swarm, project, settings, prompts } = await start(YAML(), ({ role }) =>
    role === "pm" ? { say: "We greet now." } : undefined,
  );
  const plan = await swarm.validate({ projectPath: project, settings });
  expect(plan.phases[1]).toMatchObject({
    phase: "note",
    maxCalls: 1,
    agents: [{ name: "pm", duty: "notes", tools: ["file_ops_read"] }],
  });
  const run = await (await swarm.start({ projectPath: project, issue: "Greet", settings })).finished;
  expect(run).toMatchObject({ status: "done", outcome: "approved" });
  expect(run.phases.map(({ name, status }) => `${name} ${status}`)).toEqual(["implement done", "note done"]);
  expect(prompts("pm")).toEqual([expect.stringContaining("Write a release note for 1 streams.")]);
  expect(readFileSync(join(project, "doc", "release-note.md"), "utf8")).toContain("We greet now.");
});

test("it is skipped by its condition, asked again by a resume after it failed, and its document is no part of work in place", async () => {
  const skipped = await start(
    YAML(", condition: differentReviewModel").replace("pipeline:", "primaryModel: scripted\nreviewModel: scripted\npipeline:"),
  );
  const run = await (await skipped.swarm.start({ projectPath: skipped.project, issue: "Greet", settings: skipped.settings }))
    .finished;
  expect(run.phases[1]).toMatchObject({
    name: "note",
    status: "skipped",
    reason: expect.stringContaining("differentReviewModel"),
  });
  expect(skipped.roles()).not.toContain("pm");

  let said = "Nothing of note.";
  const { swarm, project, home, settings, roles } = await start(
    YAML(", mustMention: greeting"),
    ({ role }) => (role === "pm" ? { say: said } : undefined),
    false,
  );
  const failed = await (await swarm.start({ projectPath: project, issue: "Greet", settings })).finished;
  expect(failed).toMatchObject({ status: "failed", reason: "note: pm did not mention greeting" });
  said = "A greeting.";
  const resumed = await (await swarm.resume(failed.id)).finished;
  expect(resumed).toMatchObject({ status: "done", outcome: "approved", tree: failed.tree });
  expect(roles().filter((role) => role === "pm")).toHaveLength(2);
  expect(roles().filter((role) => role === "engineer")).toHaveLength(1);
  expect(existsSync(join(project, "doc", "release-note.md"))).toBe(true);
  const next = await (await swarm.start({ projectPath: project, issue: "Greet again", settings })).finished;
  const files = git(join(home, "runs", next.id, "shadow.git"), "ls-tree", "-r", "--name-only", next.tree!).split("\n");
  expect(files).toContain("T1.txt");
  expect(files.filter((file) => file.startsWith("doc/"))).toEqual([]);
});

test.each([
  ["an unknown key", YAML(", mustMenton: x"), 'pipeline[1].mustMenton: there is no such key. Did you mean "mustMention"?'],
  [
    "an agent nobody knows",
    YAML().replace("agent: pm", "agent: pn"),
    'pipeline[1].agent: no agent is called "pn". Did you mean "pm"?',
  ],
  ["a slip in its name", YAML().replace("note", "notte"), '"notte" is no phase. Did you mean "note"?'],
  ["a phase missing before it", "pipeline:\n  - {phase: note, agent: pm}\n", '"note" needs an "implement" phase before it'],
  ["a phase after it that must stand before", `${YAML()}  - {phase: spec, agent: pm}\n`, '"spec" must stand before "implement"'],
])("a file with %s is refused with the place, and no other swarm knows the new kind", async (_, yaml, said) => {
  const { swarm, project, settings } = await start(yaml);
  await expect(swarm.validate({ projectPath: project, settings })).rejects.toThrow(said);
  expect(JSON.stringify(pipelineJsonSchema(kinds))).toContain('"note"');
  expect(JSON.stringify(pipelineJsonSchema(PHASE_KINDS))).not.toContain('"note"');
});
