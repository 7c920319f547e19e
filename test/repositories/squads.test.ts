import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ChatRequest } from "../../src/engine/rehearsal/wire.ts";
import type { Activity, Squad, Task } from "../../src/protocol/squads.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { characterOf, delegate, ended, project, squadWith, stepOf, systemOf } from "../support/squads.ts";
import { git, sh, write } from "../support/swarm/index.ts";
import { writeFiles } from "../support/swarm/real-project.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

const NPM_CI = "npm ci --no-audit --no-fund";
let daemon: TestDaemon;
let model: Awaited<ReturnType<typeof scriptedModel>>;

beforeAll(async () => {
  const script = (request: ChatRequest) => {
    if (!characterOf(request)) return { say: "noted" };
    const step = stepOf(request);
    if (step === 0) return sh(`node -e "process.exit(require('dep') === 1 ? 0 : 1)"`);
    return step === 1 ? write("index.js", "module.exports = require('dep');\n") : { say: "Done." };
  };
  model = await scriptedModel(script, undefined, atTheEnd);
  daemon = await startDaemonProcess(temporaryHome({}, atTheEnd), providerEnvironment(model.url), atTheEnd);
});

/** Files of a project that depends on one package inside it. Each install appends a line to `mark`. */
function npmFiles(mark: string): Record<string, string> {
  const folder = temporaryFolder();
  writeFiles(folder, {
    "dep/package.json": JSON.stringify({ name: "dep", version: "1.0.0", main: "index.js" }),
    "dep/index.js": "module.exports = 1;\n",
    "package.json": JSON.stringify({
      ...{ name: "app", version: "1.0.0", dependencies: { dep: "file:./dep" } },
      scripts: { postinstall: `echo installed >> ${mark}` },
    }),
  });
  const npm = ["install", "--package-lock-only", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"];
  execFileSync("npm", npm, { cwd: folder, stdio: "ignore" });
  const names = ["dep/package.json", "dep/index.js", "package.json", "package-lock.json"];
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), "utf8")]));
}

/** Runs one squad task on a folder. Returns the activities before its first call, and the prompt that its agent read first. */
async function taskOf(slug: string, folder: string, isolation: Squad["isolation"]) {
  if (!(await daemon.json<{ items: Squad[] }>("GET", "/api/squads")).items.some((squad) => squad.slug === slug)) {
    await squadWith(daemon, folder, slug, ["Engineer"]);
    await daemon.json("PATCH", `/api/squads/${slug}`, { isolation });
  }
  const asked = model.requests.length;
  const { id } = await delegate(daemon, slug, { task: "Use it" });
  const task: Task = await ended(daemon, id, 120_000);
  const { items } = await daemon.json<{ items: Activity[] }>("GET", `/api/tasks/${id}/activity?limit=100`);
  const first = items.findIndex(({ kind }) => kind === "model" || kind === "tool");
  const request = model.requests.slice(asked).find(characterOf)!;
  return { task, beforeCall: items.slice(0, first).map(({ summary }) => summary), read: systemOf(request) };
}

test("a task's worktree has what the lock file asks for before its agent is asked; it is installed once for all tasks", async () => {
  const mark = join(temporaryFolder(), "installs");
  const folder = project({ ".gitignore": "node_modules\n", ...npmFiles(mark) });
  for (const told of [[expect.stringContaining(`installs what package-lock.json asks for: ${NPM_CI}`)], [expect.anything()]]) {
    const { task, beforeCall, read } = await taskOf("installed", folder, "worktree");
    expect(task).toMatchObject({ status: "done", evidence: { filesChanged: ["index.js"], commands: [{ exitCode: 0 }] } });
    expect(beforeCall).toEqual(expect.arrayContaining(told));
    expect(read).not.toContain("Not installed here");
    expect(git(folder, "diff", "--name-only", `${task.evidence!.base}..${task.evidence!.branch}`)).toBe("index.js");
  }
  expect(readFileSync(mark, "utf8")).toBe("installed\n");
  expect([existsSync(join(folder, "node_modules")), git(folder, "status", "--porcelain")]).toEqual([false, ""]);
});

test("in a folder below the repository, what that folder's lock file asks for is installed, though git does not ignore it", async () => {
  const files = npmFiles("/dev/null");
  const folder = project(Object.fromEntries(Object.entries(files).map(([name, text]) => [`part/${name}`, text])));
  const { task } = await taskOf("below", join(folder, "part"), "worktree");
  expect(task).toMatchObject({ status: "done", evidence: { filesChanged: ["index.js"], commands: [{ exitCode: 0 }] } });
});

test("what cannot be installed is told to the person and to the agent before the first model call, with the command", async () => {
  const files = npmFiles("/dev/null");
  const gone: Record<string, string> = {
    ...files,
    "package-lock.json": files["package-lock.json"]!.replace('"version": "1.0.0"', '"version": "2.0.0"'),
  };
  const folder = project({ ...gone, "package.json": gone["package.json"]!.replace("file:./dep", "file:./nowhere") });
  const { task, beforeCall, read } = await taskOf("missing", folder, "worktree");
  const told = expect.stringMatching(`"${NPM_CI}" failed .*What needs it cannot run. Install it in the project: ${NPM_CI}`);
  expect(beforeCall).toEqual(expect.arrayContaining([told]));
  expect(read).toMatch(/Not installed here, so what needs it cannot run; .*:\n- "npm ci/);
  expect(task.evidence).toMatchObject({ filesChanged: ["index.js"], commands: [{ exitCode: 1 }] });
});

test("in the project's own folder nothing is installed, and that is told to both", async () => {
  const mark = join(temporaryFolder(), "installs");
  const folder = project({ ".gitignore": "node_modules\n", ...npmFiles(mark) });
  const { beforeCall, read } = await taskOf("in-place", folder, "none");
  expect(beforeCall).toContain(`what package-lock.json asks for is not installed. Install it: ${NPM_CI}`);
  expect(read).toContain("Not installed here");
  expect([existsSync(mark), existsSync(join(folder, "node_modules"))]).toEqual([false, false]);
});
