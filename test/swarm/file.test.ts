import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { PHASE_KINDS } from "../../src/swarm/phases/index.ts";
import { findPipelineFile, loadPipeline, readPipeline } from "../../src/swarm/pipeline/file.ts";
import { resolvePlan } from "../../src/swarm/pipeline/plan.ts";
import { describeProblems } from "../../src/swarm/pipeline/problems.ts";
import { pipelineJsonSchema } from "../../src/swarm/pipeline/schema.ts";
import { readRunSettings } from "../../src/swarm/pipeline/settings.ts";
import { temporaryFolder } from "../support/home.ts";

const shipped = join(packageRoot, "agents");
const DEFAULT = join(packageRoot, "pipelines", "default.yaml");
const text = readFileSync(DEFAULT, "utf8");

const reading = (root: string, agentsDir: string) => ({ kinds: PHASE_KINDS, places: { root, agentsDir, shipped } });

async function problemsOf(yaml: string, root = temporaryFolder()): Promise<string> {
  const read = await readPipeline(yaml, reading(root, ".github/agents"));
  return "problems" in read ? describeProblems("swarm.config.yaml", read.problems) : "valid";
}

const changed = (from: string | RegExp, to: string) => {
  const result = text.replace(from, to);
  expect(result).not.toBe(text);
  return result;
};
const REVIEW = "      - agent: pm-reviewer\n        maxIterations: 3\n        approvalKeyword: APPROVED\n";

const BROKEN: [string, () => string, RegExp[]][] = [
  [
    "an unknown key at the top",
    () => changed("primaryModel:", "primryModel:"),
    [/:3: primryModel: there is no such key\. Did you mean "primaryModel"\?/],
  ],
  [
    "an unknown key of a phase",
    () => changed("frontendMarker:", "frontendMark:"),
    [/pipeline\[1\]\.frontendMark: there is no such key\. Did you mean "frontendMarker"\?/],
  ],
  [
    "an unknown key of a review",
    () => changed("        maxIterations: 3\n", "        maxIteration: 3\n"),
    [/pipeline\[0\]\.reviews\[0\]\.maxIteration: there is no such key\. Did you mean "maxIterations"/],
  ],
  [
    "an unknown key of qa",
    () => changed("      maxIterations: 5\n", "      maxIterations: 5\n      clarificationKeyword: X\n"),
    [/pipeline\[3\]\.qa\.clarificationKeyword: there is no such key/],
  ],
  [
    "an unknown phase",
    () => changed("phase: implement", "phase: implment"),
    [/pipeline\[3\]\.phase: "implment" is no phase\. Did you mean "implement"\?/],
  ],
  [
    "an unknown condition",
    () => changed("condition: hasFrontendTasks", "condition: hasFrontendTask"),
    [/pipeline\[2\]\.condition: "hasFrontendTask" is no condition\. Did you mean "hasFrontendTasks"\?/],
  ],
  [
    "a condition that is always",
    () => changed("condition: differentReviewModel", "condition: always"),
    [/"always" is no condition\. There are: hasFrontendTasks, differentReviewModel, noPlanProvided\./],
  ],
  [
    "an agent nobody knows",
    () => changed("agent: designer", "agent: desinger"),
    [
      /pipeline\[2\]\.agent: no agent is called "desinger"\. Did you mean "designer"\?.*looked at .*\.github\/agents\/desinger\.md and .*agents\/desinger\.md/,
    ],
  ],
  [
    "a reviewer nobody knows",
    () => changed("agent: code-reviewer", "agent: code-reviwer"),
    [/pipeline\[3\]\.reviews\[0\]\.agent: no agent is called "code-reviwer"\. Did you mean "code-reviewer"/],
  ],
  [
    "a fixing agent nobody knows",
    () => changed("fixAgent: engineer", "fixAgent: enginer"),
    [/pipeline\[4\]\.fixAgent: .*Did you mean "engineer"/],
  ],
  [
    "a clarifying agent nobody knows",
    () => changed("    clarificationAgent: pm\n", "    clarificationAgent: pmm\n"),
    [/clarificationAgent: no agent is called "pmm"/],
  ],
  [
    "a tester nobody knows",
    () => changed("agent: tester", "agent: texter"),
    [/pipeline\[3\]\.qa\.agent: no agent is called "texter"\. Did you mean "tester"/],
  ],
  [
    "an agent's file that is missing",
    () => changed("engineer: builtin:engineer", "engineer: roles/engineer.md"),
    [/agents\.engineer: its file is missing; looked at \/.*\/roles\/engineer\.md/],
  ],
  [
    "a builtin that does not exist",
    () => changed("builtin:tester", "builtin:testr"),
    [/agents\.tester: "builtin:testr": its instructions are missing; looked at \/.*testr\.md and \/.*agents\/testr\.md/],
  ],
  [
    "a path out of the repository",
    () => changed("builtin:tester", "../../etc/passwd"),
    [/agents\.tester: "\.\.\/\.\.\/etc\/passwd" is not a path inside the repository/],
  ],
  ["an absolute path", () => changed("builtin:tester", "/etc/passwd"), [/agents\.tester: .*not a path inside the repository/]],
  ["a builtin without a name", () => changed("builtin:tester", '"builtin:"'), [/agents\.tester: .*does not name an agent/]],
  ["a number where a list belongs", () => changed(/pipeline:[\s\S]*/, "pipeline: 3\n"), [/pipeline: found 3:/]],
  ["an empty pipeline", () => changed(/pipeline:[\s\S]*/, "pipeline: []\n"), [/pipeline: found \[\]:/]],
  ["no pipeline at all", () => changed(/pipeline:[\s\S]*/, ""), [/"pipeline" is missing/]],
  [
    "a text where a number belongs",
    () => changed("maxIterations: 5", 'maxIterations: "five"'),
    [/pipeline\[3\]\.qa\.maxIterations: found "five":/],
  ],
  ["no iterations", () => changed("maxIterations: 5", "maxIterations: 0"), [/maxIterations: found 0:/]],
  ["half an iteration", () => changed("maxIterations: 5", "maxIterations: 1.5"), [/maxIterations: found 1\.5:/]],
  [
    "a word where yes or no belongs",
    () => changed("parallel: true", "parallel: sometimes"),
    [/pipeline\[3\]\.parallel: found "sometimes":/],
  ],
  [
    "a review by nobody",
    () => changed("- agent: pm-reviewer\n        maxIterations", "- maxIterations"),
    [/pipeline\[0\]\.reviews\[0\]: "agent" is missing/],
  ],
  [
    "an empty keyword",
    () => changed("approvalKeyword: ALL_PASSED", 'approvalKeyword: ""'),
    [/pipeline\[3\]\.qa\.approvalKeyword: found "": a keyword is one line/],
  ],
  [
    "a keyword of two lines",
    () => changed("approvalKeyword: ALL_PASSED", 'approvalKeyword: "ALL\\nPASSED"'),
    [/approvalKeyword: .*a keyword is one line/],
  ],
  ["a keyword that is a negation", () => changed("approvalKeyword: ALL_PASSED", "approvalKeyword: NOT BAD"), [/negation/]],
  [
    "a keyword that means two things",
    () => changed("clarificationKeyword: CLARIFICATION_NEEDED", "clarificationKeyword: approved"),
    [/pipeline\[2\]\.reviews\[0\]\.clarificationKeyword: "approved" is the approval keyword too/],
  ],
  [
    "a question that nobody answers",
    () => changed(REVIEW, `${REVIEW}        clarificationKeyword: ASK\n`),
    [/clarificationKeyword: nobody answers: name a "clarificationAgent" too/],
  ],
  [
    "an ending that does not exist",
    () => changed(REVIEW, `${REVIEW}        onExhausted: stop\n`),
    [/pipeline\[0\]\.reviews\[0\]\.onExhausted: found "stop":.*continue/],
  ],
  [
    "a specification that nothing after it uses",
    () => `${text}\n  - phase: spec\n    agent: pm\n`,
    [/pipeline\[5\]\.phase: "spec" must stand before "decompose": nothing that follows uses what it makes/],
  ],
  [
    "tasks split after they were done",
    () => "agents: {}\npipeline:\n  - {phase: implement, parallel: true, agent: engineer}\n  - {phase: decompose, agent: pm}\n",
    [/:4: pipeline\[1\]\.phase: "decompose" must stand before "implement"/],
  ],
  [
    "a condition on tasks that nobody splits",
    () => "pipeline:\n  - {phase: design, agent: designer, condition: hasFrontendTasks}\n",
    [/"hasFrontendTasks" needs a "decompose" phase before it/],
  ],
  [
    "a cross review of nothing",
    () =>
      "pipeline:\n  - {phase: cross-model-review, agent: cross-model-reviewer, fixAgent: engineer, maxIterations: 1, approvalKeyword: OK}\n",
    [/needs an "implement" phase before it/],
  ],
  ["too many at once", () => `concurrency: 99\n${text}`, [/:1: concurrency: found 99:/]],
  ["checks that are no list", () => `checks: npm test\n${text}`, [/:1: checks: found "npm test":/]],
  ["an empty check", () => `checks: ["npm test", ""]\n${text}`, [/checks\[1\]: found "":/]],
  [
    "a name that is no name",
    () => changed("  tester: builtin:tester", "  te/ster: builtin:tester"),
    [/agents\.te\/ster: .*no name for an agent/],
  ],
  ["a source that is no text", () => changed("builtin:tester", "42"), [/agents\.tester: found 42:/]],
  [
    "the same key twice",
    () => changed("primaryModel: claude-opus-4-6-fast", "primaryModel: a\nprimaryModel: b"),
    [/:4: \(file\): is not valid YAML: Map keys must be unique/],
  ],
  ["broken YAML", () => changed("agents:", "agents: ["), [/is not valid YAML/]],
  ["an empty file", () => "", [/must hold "agents" and "pipeline"; found an empty file/]],
  ["a list for a file", () => "- a\n- b\n", [/found a list/]],
];

test.each(BROKEN)(
  "a pipeline file with %s is refused with the line, the place and what would be right",
  async (_, yaml, expected) => {
    const said = await problemsOf(yaml());
    for (const pattern of expected) expect(said).toMatch(pattern);
    expect(said).toMatch(/swarm\.config\.yaml:\d+: /);
  },
);

test("all errors of a file come at once, in the order of their lines", async () => {
  const yaml = text
    .replace("primaryModel", "primryModel")
    .replace("builtin:tester", "nowhere.md")
    .replace("maxIterations: 5", "maxIterations: no")
    .replace("condition: differentReviewModel", "condition: x");
  const lines = [...(await problemsOf(yaml)).matchAll(/yaml:(\d+): (\S+):/g)].map((match) => [Number(match[1]), match[2]]);
  expect(lines.map(([, path]) => path)).toEqual([
    "primryModel",
    "agents.tester",
    "pipeline[3].qa.maxIterations",
    "pipeline[4].condition",
  ]);
  expect(lines.map(([line]) => line)).toEqual([...lines.map(([line]) => Number(line))].sort((a, b) => a - b));
});

test("the shipped pipelines are valid, and the schema for editors is the one the code checks with", async () => {
  expect(await problemsOf(text)).toBe("valid");
  expect(await problemsOf(readFileSync(join(packageRoot, "pipelines", "swarm.config.example.yaml"), "utf8"))).toBe("valid");
  const schema = JSON.parse(readFileSync(join(packageRoot, "pipelines", "swarm.schema.json"), "utf8"));
  expect(schema).toEqual(JSON.parse(JSON.stringify(pipelineJsonSchema(PHASE_KINDS))));
});

/** The file as printed in the documentation of the original program. */
const BARE = `# Models (overridable via PRIMARY_MODEL / REVIEW_MODEL env vars)
primaryModel: claude-opus-4-6-fast
reviewModel: gpt-5.2-codex

agents:
  pm:           builtin:pm                    # Built-in instructions
  engineer:     .github/agents/engineer.md    # Custom file in repo
  security:     .github/agents/security.md    # Entirely new agent

pipeline:
  - phase: spec          # Specification drafting + reviews
  - phase: decompose     # Task decomposition
  - phase: design        # UI/UX design (conditional)
  - phase: implement     # Per-task engineering + reviews + QA
  - phase: cross-model-review  # Different-model review (conditional)
`;
function projectWithAgents(): string {
  const root = temporaryFolder();
  mkdirSync(join(root, ".github", "agents"), { recursive: true });
  for (const name of ["engineer", "security"]) writeFileSync(join(root, ".github", "agents", `${name}.md`), `I am ${name}.`);
  return root;
}
async function phasesOf(yaml: string, root = projectWithAgents()) {
  const read = await readPipeline(yaml, reading(root, ".github/agents"));
  if ("problems" in read) throw new Error(describeProblems("swarm.config.yaml", read.problems));
  return { phases: read.pipeline.pipeline, notes: read.notes, agents: [...read.agents.keys()] };
}

test("phases of which only the kind is named are those of the default pipeline, and the plan says so", async () => {
  const bare = await phasesOf(BARE);
  expect(bare.phases).toEqual((await phasesOf(text)).phases);
  expect(bare.agents).toEqual(expect.arrayContaining(["pm", "security", "spec-reviewer", "code-reviewer", "cross-model"]));
  expect(bare.notes).toEqual([
    "pipeline[0] (spec) by default: agent pm, reviews by pm-reviewer and spec-reviewer",
    "pipeline[1] (decompose) by default: agent pm",
    "pipeline[2] (design) by default: condition hasFrontendTasks, agent designer, clarificationAgent pm, reviews by design-reviewer",
    "pipeline[3] (implement) by default: agent engineer, parallel true, reviews by code-reviewer, qa by tester",
    "pipeline[4] (cross-model-review) by default: condition differentReviewModel, agent cross-model, fixAgent engineer, maxIterations 3, approvalKeyword APPROVED",
  ]);
});

test("the keys that the original's documentation names for each phase suffice; who names an agent gets no reviews unasked", async () => {
  const { phases, notes } = await phasesOf(`pipeline:
  - {phase: spec, agent: pm, reviews: [{agent: pm-reviewer}]}
  - {phase: decompose, agent: pm, frontendMarker: "[UI]"}
  - {phase: design, condition: hasFrontendTasks, agent: designer, clarificationAgent: pm, reviews: []}
  - {phase: implement, parallel: false, agent: engineer, reviews: [{agent: security, maxIterations: 2}], qa: {agent: tester}}
  - {phase: cross-model-review, condition: differentReviewModel, agent: cross-model, fixAgent: engineer, maxIterations: 1}
`);
  const review = { onExhausted: "continue", maxIterations: 3, approvalKeyword: "APPROVED" };
  expect(phases).toMatchObject([
    { agent: "pm", reviews: [{ agent: "pm-reviewer", ...review }] },
    { agent: "pm", frontendMarker: "[UI]" },
    { agent: "designer", reviews: [] },
    {
      parallel: false,
      reviews: [{ ...review, maxIterations: 2 }],
      qa: { ...review, maxIterations: 5, approvalKeyword: "ALL_PASSED" },
    },
    { maxIterations: 1, approvalKeyword: "APPROVED" },
  ]);
  expect(notes).toEqual(["pipeline[4] (cross-model-review) by default: approvalKeyword APPROVED"]);
});

test("a phase keeps what it says, null and an empty list included, and the rest is filled in", async () => {
  const { phases, notes } = await phasesOf(`pipeline:
  - {phase: spec, reviews: []}
  - {phase: decompose, agent: null}
  - {phase: design, condition: null, reviews: null}
  - {phase: implement, parallel: false, qa: null}
  - {phase: verify}
  - {phase: implement, agent: engineer}
  - {phase: cross-model-review, agent: security, condition: null}
`);
  expect(phases).toMatchObject([
    { agent: "pm", reviews: [] },
    { agent: "pm" },
    { agent: "designer", reviews: [] },
    { agent: "engineer", parallel: false, reviews: [{ agent: "code-reviewer" }] },
    { fixAgent: "engineer", maxIterations: 3 },
    { agent: "engineer", parallel: true, reviews: [] },
    { agent: "security", fixAgent: "engineer", maxIterations: 3, approvalKeyword: "APPROVED" },
  ]);
  for (const at of [2, 6]) expect(phases[at]).not.toHaveProperty("condition");
  for (const at of [3, 5]) expect(phases[at]).not.toHaveProperty("qa");
  expect(notes).toContain("pipeline[5] (implement) by default: parallel true");
});

test("an agent that is filled in is the repository's own where it has one", async () => {
  const root = projectWithAgents();
  writeFileSync(join(root, ".github", "agents", "code-reviewer.agent.md"), "Our own reviewer.");
  const read = await readPipeline("pipeline:\n  - phase: implement\n", reading(root, ".github/agents"));
  if ("problems" in read) throw new Error("refused");
  expect(read.agents.get("code-reviewer")).toMatchObject({ instructions: "Our own reviewer." });
  expect(read.agents.get("engineer")).toMatchObject({ instructions: "I am engineer." });
});

test("an agent comes from the repository's own folder, from a file of it, from what ships, or by its name alone", async () => {
  const root = temporaryFolder();
  mkdirSync(join(root, ".github", "agents"), { recursive: true });
  writeFileSync(join(root, ".github", "agents", "pm.md"), "---\nmodel: small\ntools: [read, github/*]\n---\nOur own pm.");
  writeFileSync(join(root, ".github", "agents", "security.md"), "Look for holes.");
  writeFileSync(join(root, "engineer.md"), "Our own engineer.");
  const yaml = text
    .replace("engineer: builtin:engineer", "engineer: engineer.md")
    .replace(
      "      - agent: code-reviewer",
      "      - {agent: security, maxIterations: 1, approvalKeyword: SAFE}\n      - agent: code-reviewer",
    );
  writeFileSync(join(root, "swarm.config.yaml"), yaml);
  const loaded = await loadPipeline(findPipelineFile(root, DEFAULT), reading(root, ".github/agents"));
  const agents = Object.fromEntries(loaded.agents);
  expect(agents.pm).toMatchObject({ instructions: "Our own pm.", model: "small", tools: ["file_ops_read"] });
  expect(agents.engineer?.instructions).toBe("Our own engineer.");
  expect(agents.security?.instructions).toBe("Look for holes.");
  expect(agents.tester?.path).toBe(join(shipped, "tester.md"));
  expect(loaded.notes.join()).toMatch(/"github\/\*" is no tool/);
});

test("an agent's file that leads out of the repository by a link is refused", async () => {
  const root = temporaryFolder();
  symlinkSync("/etc/hostname", join(root, "engineer.md"));
  expect(await problemsOf(text.replace("builtin:engineer", "engineer.md"), root)).toMatch(
    /agents\.engineer: .*leads out of the repository/,
  );
});

test("PRIMARY_MODEL and REVIEW_MODEL stand above the file", async () => {
  const settings = readRunSettings({ PRIMARY_MODEL: "one", REVIEW_MODEL: "two" });
  const { pipeline } = await loadPipeline(DEFAULT, { ...reading(temporaryFolder(), "a"), models: settings });
  expect([pipeline.primaryModel, pipeline.reviewModel]).toEqual(["one", "two"]);
});

test("the plan names every agent with its model and tools, and the most calls it can cost", async () => {
  const plan = resolvePlan(await loadPipeline(DEFAULT, reading(temporaryFolder(), "a")), PHASE_KINDS, 2);
  const tools = Object.fromEntries(plan.phases.flatMap((phase) => phase.agents.map((agent) => [agent.name, agent.tools.join()])));
  expect(tools).toMatchObject({
    pm: "file_ops_read",
    "code-reviewer": "file_ops_read",
    tester: "shell,file_ops_read",
    engineer: "shell,file_ops",
    "cross-model": "file_ops_read",
  });
  expect(plan.phases.map((phase) => phase.maxCalls)).toEqual([21, 3, 35, 41, 45]);
  expect(plan.maxCalls[0]).toEqual({ tasks: 1, calls: 145 });
  expect(plan.triesPerCall).toBe(3);
});

test.each([
  ["VERBOSE", "yes", /VERBOSE: found "yes": must be "true" or "false"/],
  ["AGENTS_DIR", "", /AGENTS_DIR: found "": must not be empty/],
  ["DOC_DIR", "../out", /DOC_DIR: .*inside the checkout/],
  ["DOC_DIR", " ", /DOC_DIR: .*must not be empty/],
  ["SESSION_TIMEOUT_MS", "-5", /SESSION_TIMEOUT_MS: found "-5": must be a whole number/],
  ["SESSION_TIMEOUT_MS", "5m", /whole number/],
  ["MAX_RETRIES", "0", /MAX_RETRIES: found "0": must be a whole number from 1/],
  ["SUMMARY_FILE_NAME", "a/b.md", /SUMMARY_FILE_NAME: .*without a folder/],
  ["PRIMARY_MODEL", "", /PRIMARY_MODEL: found "": must not be empty/],
  ["REVIEW_MODEL", " ", /REVIEW_MODEL: .*must not be empty/],
  ["ISSUE_BODY", "", /ISSUE_BODY: there is no request/],
])("the variable %s with the value %j is refused with what is allowed", (name, value, expected) => {
  expect(() => readRunSettings({ ISSUE_BODY: "x", [name]: value }, { issueNeeded: true })).toThrow(expected);
});

test("all wrong variables are told at once, the defaults are the documented ones, and words stand above ISSUE_BODY", () => {
  expect(() => readRunSettings({ VERBOSE: "1", MAX_RETRIES: "x", DOC_DIR: "" }, { issueNeeded: true })).toThrow(
    /VERBOSE[\s\S]*ISSUE_BODY[\s\S]*DOC_DIR[\s\S]*MAX_RETRIES/,
  );
  expect(readRunSettings({ ISSUE_BODY: "from the variable" })).toEqual({
    verbose: false,
    issue: "from the variable",
    agentsDir: ".github/agents",
    docDir: "doc",
    sessionTimeoutMs: 300_000,
    maxRetries: 2,
    summaryFileName: "swarm-summary.md",
    primaryModel: undefined,
    reviewModel: undefined,
  });
  expect(readRunSettings({ ISSUE_BODY: "from the variable" }, { words: "from the line" }).issue).toBe("from the line");
});
