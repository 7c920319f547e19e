import { expect, test } from "vitest";
import type { Run } from "../../src/protocol/runs.ts";
import { cleanEnvironment, endDaemonOf, providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { swarm as swarmCommand } from "../support/swarm/command.ts";
import { git, makeProject, NOTHING_TO_BREAK, play, type Script, startSwarm, write } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const BUILD = "pipeline:\n  - {phase: implement, parallel: true, agent: builder}\n";
const QA = `pipeline:
  - phase: implement
    parallel: true
    agent: builder
    reviews: [{agent: critic, maxIterations: 1, approvalKeyword: APPROVED}]
    qa: {agent: prober, maxIterations: 1, approvalKeyword: ALL_PASSED}
`;
const at = (name: string) => `.github/agents/${name}.md`;
const agent = (front: string, text = "I build.") => `---\n${front}\n---\n${text}\n`;
const builds: Script = ({ role, afterTool }) =>
  role === "I build." ? (afterTool ? { say: "Done." } : write("made.txt", "made\n")) : undefined;
const offered = (request: { tools?: unknown }) =>
  ((request.tools ?? []) as { function: { name: string } }[]).map((tool) => tool.function.name).sort();

test.each([
  ["copilot-swarm", "name: Senior Engineer\ntools: [read_file, edit_file, run_terminal, list_dir]"],
  ["GitHub Copilot", "description: builds\ntools: ['read', 'Edit', 'search', 'execute', 'agent', 'web', 'todo']"],
  [
    "VS Code",
    "tools: ['codebase', 'edit/editFiles', 'runCommands', 'search/changes', 'runTests', 'problems', 'usages', 'fetch']",
  ],
  [
    "Claude Code, in a line",
    "name: builder\ntools: Read, MultiEdit, Write, Grep, Glob, LS, Bash(git add:*, git commit:*), TodoWrite",
  ],
  ["Claude Code, as a list", "tools:\n  - Read\n  - Edit\n  - Bash\n  - WebFetch\n  - Task"],
  ["everybody", 'tools: ["*"]'],
])("an implementing agent whose file is written for %s has a shell and files, and builds", async (_, front) => {
  const { swarm, project, settings, model } = await startSwarm({
    script: builds,
    files: { "swarm.config.yaml": BUILD, [at("builder")]: agent(front) },
  });
  const run = await (await swarm.start({ projectPath: project, issue: "Do it", settings })).finished;
  expect(run).toMatchObject({ status: "done", outcome: "approved", streams: [{ status: "done", merged: true }] });
  expect(offered(model.requests[0]!)).toEqual(["file_ops", "shell"]);
  expect(git(project, "show", `swarm/${run.id}:made.txt`)).toBe("made");
});

test.each([
  ["copilot-swarm", "read_file, list_dir, run_terminal", "shell,file_ops_read"],
  ["GitHub Copilot in another case", "READ, Search, Shell", "shell,file_ops_read"],
  ["VS Code's sets with all they hold", "search/*, read/readFile, execute/runInTerminal", "shell,file_ops_read"],
  ["Claude Code", "Grep, Glob, LS, Bash", "shell,file_ops_read"],
  ["Claude Code's words as only GitHub Copilot takes them", "grep, BASH", "shell,file_ops_read"],
  ["VS Code's words in a case that it does not take", "runcommands, Codebase, EDITFILES", ""],
  ["copilot-swarm's words in a case that it does not take", "Read_File, RUN_TERMINAL", ""],
  ["nothing", "", ""],
])("a tester's tools in the words of %s come to what its duty allows", async (_, words, expected) => {
  const { swarm, project, settings } = await startSwarm({
    files: {
      "swarm.config.yaml": QA,
      [at("builder")]: "I build.",
      [at("critic")]: "I judge.",
      [at("prober")]: agent(`tools: [${words}]`, "I probe."),
    },
  });
  const { phases } = await swarm.validate({ projectPath: project, settings });
  expect(phases[0]!.agents.find(({ name }) => name === "prober")!.tools.join()).toBe(expected);
});

test("a file that leaves out its tools, or says null, has what its duty allows, and inherit is no model", async () => {
  const { swarm, project, settings } = await startSwarm({
    files: { "swarm.config.yaml": `primaryModel: scripted\n${BUILD}`, [at("builder")]: agent("tools:\nmodel: inherit") },
  });
  const { phases, notes } = await swarm.validate({ projectPath: project, settings });
  expect(phases[0]!.agents[0]).toMatchObject({ model: "scripted", tools: ["shell", "file_ops"] });
  expect(notes).toEqual([]);
});

test("a list of models takes the first that is there, one name stands for it, and the run says who answered", async () => {
  const { swarm, project, settings, model } = await startSwarm({
    script: builds,
    models: ["scripted", "small", "large"],
    files: { "swarm.config.yaml": `primaryModel: scripted\n${BUILD}`, [at("builder")]: agent("model: [swift-9, large, small]") },
  });
  const run = await (await swarm.start({ projectPath: project, issue: "Do it", settings })).finished;
  expect(run).toMatchObject({ status: "done", outcome: "approved" });
  expect(run.models).toContainEqual({ name: "swift-9 or large or small", model: "large", standsIn: false });
  expect(new Set(model.requests.map((request) => request.model))).toEqual(new Set(["large"]));
  expect(run.steps.find(({ kind }) => kind === "call")).toMatchObject({ model: "large", asked: "swift-9 or large or small" });
});

test("a list of which no model is there is refused like a single one, with its file and what is there", async () => {
  const { swarm, project, settings, model } = await startSwarm({
    models: ["scripted"],
    files: { "swarm.config.yaml": `primaryModel: scripted\n${BUILD}`, [at("builder")]: agent("model: [swift-9, brain-2]") },
  });
  const start = (standIns: boolean) => swarm.start({ projectPath: project, issue: "Do it", settings, standIns });
  await expect(start(false)).rejects.toThrow(
    /^a model that was named is not there, nothing was started\.\n {2}\.github\/agents\/builder\.md: model: there is no model "swift-9 or brain-2"; there is scripted\./,
  );
  expect(model.requests).toEqual([]);
  const run = await (await start(true)).finished;
  expect(run.models).toContainEqual({ name: "swift-9 or brain-2", model: "scripted", standsIn: true });
});

test.each([
  ["copilot-swarm", "tools: [read_file, list_dir]", "file_ops_read", "edit_file"],
  ["Claude Code", "tools: Read, Grep", "file_ops_read", "Edit"],
  ["GitHub Copilot", "tools: [read, search, web]", "file_ops_read", "edit"],
  ["words nobody knows", "tools: [wrench, hammer]", "none", "edit"],
  ["an empty list", "tools: []", "none", "edit"],
])(
  "an implementing agent without a way to write (%s) is an error before the first call, with the word to add",
  async (_, front, tools, word) => {
    const { swarm, project, settings, model } = await startSwarm({
      files: { "swarm.config.yaml": BUILD, [at("builder")]: agent(front) },
    });
    const why = `swarm.config.yaml:2: pipeline[0].agent: "builder" has to change files here and could not: ${project}/.github/agents/builder.md narrows its tools to ${tools}. Add "${word}" to its "tools", or leave "tools" out`;
    await expect(swarm.start({ projectPath: project, issue: "Do it", settings })).rejects.toThrow(why);
    await expect(swarm.validate({ projectPath: project, settings })).rejects.toThrow(why);
    expect(model.requests).toEqual([]);
    expect(swarm.list()).toEqual([]);
  },
);

test("the same holds for a fixing agent, and a shell is a way to write", async () => {
  const cross = (name: string) =>
    `pipeline:\n  - {phase: implement, parallel: true, agent: builder}\n  - {phase: cross-model-review, agent: critic, fixAgent: ${name}, maxIterations: 1, approvalKeyword: OK}\n`;
  const files = { [at("builder")]: agent("tools: Read, Bash"), [at("critic")]: agent("tools: Read", "I judge.") };
  const { swarm, project, settings } = await startSwarm({ files: { ...files, "swarm.config.yaml": cross("critic") } });
  await expect(swarm.validate({ projectPath: project, settings })).rejects.toThrow(
    /^.*: 1 problem, nothing was started\.\n.*:3: pipeline\[1\]\.fixAgent: "critic" has to change files here and could not/,
  );
  const other = await startSwarm({ files: { ...files, "swarm.config.yaml": cross("builder") } });
  const { phases } = await other.swarm.validate({ projectPath: other.project, settings: other.settings });
  expect(phases[1]!.agents[1]).toMatchObject({ name: "builder", tools: ["shell", "file_ops_read"] });
});

test("words that nobody knows, and those for what agents do not have, are told by a run on stderr and among its notes", {
  timeout: 120_000,
}, async () => {
  const model = await scriptedModel(play(builds));
  const project = makeProject({
    "swarm.config.yaml": BUILD,
    [at("builder")]: agent("tools: [edit, runComands, github/*, web, mcp__jira__get, 'Bash(git:*)']"),
  });
  const home = temporaryHome();
  const env = cleanEnvironment(home, providerEnvironment(model.url));
  const notes = [
    '.github/agents/builder.md: "runComands" is no tool of a pipeline agent and is left out (there are shell and file_ops; did you mean "runCommands"?)',
    '.github/agents/builder.md: "github/*", "web", "mcp__jira__get" are no tools of a pipeline agent and are left out (it has files and a shell, and neither the web, to-do lists, MCP servers nor other agents)',
    '.github/agents/builder.md: "Bash(git:*)": what stands in brackets is not kept to, the whole tool is given',
  ].map((note) => `${project}/${note}`);
  const ran = await swarmCommand(["Do it", "--json"], project, env);
  expect(ran.code).toBe(0);
  expect(ran.stderr.split("\n")).toEqual(expect.arrayContaining(notes));
  expect((JSON.parse(ran.stdout) as Run).notes).toEqual([...notes, NOTHING_TO_BREAK]);

  await endDaemonOf(home);
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const { id } = await daemon.json<Run>("POST", "/api/runs", { projectPath: project, issue: "Do it" });
  const run = await until("the run to end", async () => {
    const shown = await daemon.json<Run>("GET", `/api/runs/${id}`);
    return shown.status === "running" ? undefined : shown;
  });
  expect(run).toMatchObject({ outcome: "approved", notes: expect.arrayContaining(notes) });
});
