import { onTestFinished } from "vitest";
import type { Run } from "../../../src/protocol/runs.ts";
import { asked } from "../approvals.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../daemon.ts";
import { type AtTheEnd, temporaryHome } from "../home.ts";
import { scriptedModel } from "../model.ts";
import { callText } from "../orchestrator.ts";
import { repository } from "../skills.ts";
import { delegate, ended, project, squadWith } from "../squads.ts";
import { until } from "../until.ts";
import { AFRESH, webModel } from "./model.ts";

export const GREETER = {
  "package.json": `${JSON.stringify({ name: "greeter", version: "1.0.0", type: "module", scripts: { test: "node --test" } }, null, 2)}\n`,
  "README.md": "# Greeter\n",
  "src/greet.js": 'export function greet(name) {\n  return "Hello, " + name + "!";\n}\n',
  "test/greet.test.js":
    'import assert from "node:assert/strict";\nimport { test } from "node:test";\nimport { greet } from "../src/greet.js";\n\ntest("greets", () => assert.equal(greet("Ada"), "Hello, Ada!"));\n',
};

/** Config that asks a person before commands that match. */
// biome-ignore lint/suspicious/noThenProperty: the name of the key in config.json
export const askBefore = (match: string) => ({ approvalRules: [{ tool: "shell", match, then: "ask" }] });

/** Starts a daemon on the page's model. */
export async function webDaemon(
  config: Record<string, unknown> = {},
  { atTheEnd = onTestFinished, extra = {} }: { atTheEnd?: AtTheEnd; extra?: NodeJS.ProcessEnv } = {},
): Promise<TestDaemon> {
  const model = await scriptedModel(webModel, undefined, atTheEnd);
  return startDaemonProcess(temporaryHome(config, atTheEnd), { ...providerEnvironment(model.url), ...extra }, atTheEnd);
}

export interface Seeded {
  daemon: TestDaemon;
  task: string;
  run: string;
  /** The project of the squad and the run. */
  folder: string;
}

/** Waits until a run is over. */
export const runEnded = (daemon: TestDaemon, id: string): Promise<Run> =>
  until(
    `the end of ${id}`,
    async () => {
      const run = await daemon.json<Run>("GET", `/api/runs/${id}`);
      return run.status === "running" ? undefined : run;
    },
    90_000,
  );

/**
 * Starts a daemon with something in every view: messages, a squad with finished work, a run, pages, a skill, `more`, and a
 * waiting question.
 */
export async function seededDaemon(more?: (daemon: TestDaemon) => Promise<void>): Promise<Seeded> {
  const daemon = await webDaemon({
    ...askBefore("rm *"),
    prices: { scripted: { input: 3, output: 15 } },
    budgets: { day: { tokens: 900_000 } },
  });
  const folder = project(GREETER);
  await daemon.ask({ text: "What is in this project?", source: "web" });
  await daemon.ask({
    text: callText("wiki_write", {
      path: "preferences/editor",
      content: "# Editor\n\nTabs, [never spaces](../general/style.md).\n",
    }),
    source: "web",
  });
  await daemon.ask({ text: "Plan the release", conversation: "release", source: "web" });
  await daemon.json("PUT", "/api/wiki/pages/general/style", { content: "# Style\n\nShort sentences.\n" });
  await daemon.json("PUT", "/api/wiki/pages/general/style", { content: "# Style\n\nShort sentences. Plain words.\n" });
  await daemon.json("PUT", "/api/wiki/pages/projects/greeter", {
    content: "# Greeter\n\nSays hello; see [style](../general/style.md).\n",
  });
  await squadWith(daemon, folder, "greeter", ["backend engineer", "tester", "technical writer"]);
  await daemon.json("POST", "/api/squads/greeter/decisions", { decision: "English only", context: "the first release" });
  const task = await ended(daemon, (await delegate(daemon, "greeter", { task: "Add a farewell to the greeter" })).id);
  const skills = repository({
    "release-notes/SKILL.md":
      "---\nname: release-notes\ndescription: Writes the notes of a release.\n---\n\n# Release notes\n\nOne line a change.\n",
  });
  await daemon.json("POST", "/api/skills", { repoUrl: skills });
  const begun = await daemon.json<Run>("POST", "/api/runs", {
    projectPath: project(GREETER),
    issue: "Add a farewell(name) function\n\nSo that guests can leave.",
  });
  const run = await runEnded(daemon, begun.id);
  await more?.(daemon);
  await daemon.json("POST", "/api/messages", { text: AFRESH, source: "web" });
  await asked(daemon);
  return { daemon, task: task.id, run: run.id, folder };
}

/** The paths of the page's views, each with something in it. */
export const viewsOf = ({ task, run }: Seeded): Record<string, string> => ({
  chat: "/chat/main",
  inbox: "/inbox",
  squads: "/squads",
  squad: "/squads/greeter",
  tasks: "/tasks",
  task: `/tasks/${task}`,
  runs: "/runs",
  run: `/runs/${run}`,
  wiki: "/wiki",
  map: "/wiki?map",
  page: "/wiki/general/style",
  skills: "/skills/release-notes",
  usage: "/usage",
  settings: "/settings",
});
