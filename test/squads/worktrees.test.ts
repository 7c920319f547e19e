import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Squad } from "../../src/protocol/squads.ts";
import { removeFolder, temporaryFolder } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { characterOf, daemonOn, delegate, ended, project, squadWith, stepOf, systemOf } from "../support/squads.ts";
import { until } from "../support/until.ts";

const git = (cwd: string, ...args: string[]) =>
  execFileSync("git", ["-c", "user.name=T", "-c", "user.email=t@t", ...args], { cwd, encoding: "utf8" }).trim();
const write = (path: string, content: string) => ({ call: [{ tool: "file_ops", args: { operation: "write", path, content } }] });
const sh = (command: string) => ({ call: [{ tool: "shell", args: { command } }] });

test("agents of an isolated squad work side by side, each on a branch of its own, and the checkout stays as it is", async () => {
  const folder = project({ "a.txt": "a\n", ".gitignore": "node_modules\n.env\n.venv\n" });
  for (const subject of ["feat: one", "fix: two", "feat: three"]) git(folder, "commit", "-q", "--allow-empty", "-m", subject);
  writeFileSync(join(folder, ".env"), "KEY=value\n");
  symlinkSync("nowhere", join(folder, ".venv"));
  mkdirSync(join(folder, "node_modules/dep"), { recursive: true });
  writeFileSync(join(folder, "node_modules/dep/index.js"), "module.exports = 1;\n");
  writeFileSync(join(folder, "dirty.txt"), "not committed\n");
  const both = new Set<string>();
  const model = await scriptedModel(async (request) => {
    const who = characterOf(request);
    if (!who) return { say: "noted" };
    const step = stepOf(request);
    if (step === 0) return write("same.txt", `by ${who}\n`);
    both.add(who);
    await until("both to have written", () => both.size === 2, 20_000);
    return step === 1 ? sh("test -f node_modules/dep/index.js && cat same.txt") : { say: "Done." };
  });
  const daemon = await daemonOn(model);
  const names = await squadWith(daemon, folder, "web", ["Engineer", "Tester"]);
  const set = await daemon.json<Squad>("PATCH", "/api/squads/web", { isolation: "worktree" });
  expect(set.isolation).toBe("worktree");
  const tasks = await Promise.all(names.map((agent) => delegate(daemon, "web", { task: `Write it, ${agent}`, agent })));
  const done = await Promise.all(tasks.map(({ id }) => ended(daemon, id)));
  for (const [index, { status, evidence, agent, id }] of done.entries()) {
    expect({ status, agent }).toEqual({ status: "done", agent: names[index] });
    expect(evidence).toMatchObject({ filesChanged: ["same.txt"], branch: `io/${id}` });
    expect(evidence?.alongside).toBeUndefined();
    expect(evidence?.commands).toEqual([{ command: expect.stringContaining("cat same.txt"), exitCode: 0 }]);
    expect(git(folder, "show", `io/${id}:same.txt`)).toBe(`by ${agent}`);
    expect(git(folder, "rev-parse", `io/${id}^{tree}`)).toBe(evidence?.treeAfter);
    expect(git(folder, "log", "-1", "--format=%B", `io/${id}`)).toBe(`feat: write it, ${agent}`);
    expect(git(folder, "rev-parse", `io/${id}^`)).toBe(git(folder, "rev-parse", "HEAD"));
  }
  expect(readdirSync(folder).sort()).toEqual([".env", ".git", ".gitignore", ".venv", "a.txt", "dirty.txt", "node_modules"]);
  expect(git(folder, "status", "--porcelain")).toBe("?? dirty.txt");
  await until("the worktrees to be gone", () => readdirSync(join(daemon.home, "runs")).length === 0, 10_000);
  expect(git(folder, "worktree", "list").split("\n")).toHaveLength(1);
  const prompt = systemOf(model.requests.find((request) => characterOf(request) === names[0])!);
  expect(prompt).toContain("a worktree of the project to yourself");
  expect(prompt).not.toContain("the same folder at the same time");
  const shown = await daemon.json<{ items: { reply: string | null }[] }>("GET", "/api/messages?conversation=main");
  expect(JSON.stringify([shown, model.requests.at(-1)])).toContain(`git merge io/`);
});

test("a worktree in which nothing is left leaves no branch; a folder that is no repository is refused with what to do", async () => {
  const model = await scriptedModel(() => ({ say: "There is nothing to do." }));
  const daemon = await daemonOn(model);
  const folder = project();
  await squadWith(daemon, folder, "web", ["Engineer"]);
  await daemon.json("PATCH", "/api/squads/web", { isolation: "worktree" });
  const { status, evidence, id } = await ended(daemon, (await delegate(daemon, "web", { task: "Look" })).id);
  expect({ status, changed: evidence?.filesChanged }).toEqual({ status: "done", changed: [] });
  await until("the branch to be gone", () => git(folder, "branch", "--list", `io/${id}`) === "", 10_000);

  const plain = temporaryFolder();
  await squadWith(daemon, plain, "plain", ["Engineer"]);
  await daemon.json("PATCH", "/api/squads/plain", { isolation: "worktree" });
  const asked = model.requests.length;
  const failed = await ended(daemon, (await delegate(daemon, "plain", { task: "Look" })).id);
  expect(failed.status).toBe("failed");
  expect(failed.error?.message).toContain("io squad set plain --isolation none");
  expect(model.requests.slice(asked).filter(characterOf)).toEqual([]);
});

test("a task in a worktree that is killed goes on there, and what it had written is on the branch", async () => {
  const folder = project();
  const model = await scriptedModel((request) => {
    if (!characterOf(request)) return { say: "noted" };
    const step = stepOf(request);
    if (step === 0) return write("first.txt", "first\n");
    if (step === 1) return killed ? write("second.txt", "second\n") : { hang: true };
    return { say: "Done." };
  });
  let killed = false;
  const daemon = await daemonOn(model);
  await squadWith(daemon, folder, "web", ["Engineer"]);
  await daemon.json("PATCH", "/api/squads/web", { isolation: "worktree" });
  const { id } = await delegate(daemon, "web", { task: "Write both" });
  await until("the first file", () => model.requests.some((request) => stepOf(request) === 1), 20_000);
  await daemon.kill("SIGKILL");
  killed = true;
  const again = await daemonOn(model, daemon.home);
  const { status, evidence } = await ended(again, id);
  expect({ status, files: evidence?.filesChanged }).toEqual({ status: "done", files: ["first.txt", "second.txt"] });
  expect(git(folder, "ls-tree", "--name-only", `io/${id}`).split("\n")).toEqual(["README.md", "first.txt", "second.txt"]);
  await until("the worktree to be gone", () => !existsSync(join(daemon.home, "runs", id)), 10_000);
});

test("without isolation, files that others changed are named as theirs, those of a squad in a folder below too", async () => {
  const folder = project({ "README.md": "x\n", "part/README.md": "y\n" });
  const wrote = new Set<string>();
  const model = await scriptedModel(async (request) => {
    if (!characterOf(request)) return { say: "noted" };
    const file = /write (\S+)/.exec(lastUserText(request))?.[1] ?? "";
    if (stepOf(request) === 0) return write(file, "text\n");
    wrote.add(file);
    await until("all to have written", () => wrote.size === 3, 20_000);
    return { say: "Done." };
  });
  const daemon = await daemonOn(model);
  const [one, two] = await squadWith(daemon, folder, "whole", ["Engineer", "Tester"]);
  await squadWith(daemon, join(folder, "part"), "part", ["Engineer"]);
  const tasks = await Promise.all([
    delegate(daemon, "whole", { task: "write one.txt", agent: one! }),
    delegate(daemon, "whole", { task: "write two.txt", agent: two! }),
    delegate(daemon, "part", { task: "write three.txt" }),
  ]);
  const [first, , third] = await Promise.all(tasks.map(({ id }) => ended(daemon, id)));
  expect(first?.evidence?.filesChanged).toEqual(["one.txt"]);
  expect(first?.evidence?.byOthers).toEqual([
    { file: "part/three.txt", task: tasks[2].id },
    { file: "two.txt", task: tasks[1].id },
  ]);
  expect(first?.evidence?.alongside?.sort()).toEqual([tasks[1].id, tasks[2].id].sort());
  expect(third?.evidence?.filesChanged).toEqual(["three.txt"]);
  expect(third?.evidence?.byOthers).toBeUndefined();
});

test("a folder that is deleted under a task fails it; its squad is told as missing everywhere until it is moved", async () => {
  const folder = project();
  const away = `${folder}-moved`;
  const model = await scriptedModel((request) => {
    if (!characterOf(request)) return { say: "noted" };
    if (stepOf(request) === 0) return write("a.txt", "a\n");
    if (existsSync(folder)) renameSync(folder, away);
    return { say: "All done." };
  });
  const daemon = await daemonOn(model);
  await squadWith(daemon, folder, "web", ["Engineer"]);
  const { status, error, evidence } = await ended(daemon, (await delegate(daemon, "web", { task: "Work" })).id);
  expect({ status, code: error?.code }).toEqual({ status: "failed", code: "project_missing" });
  expect(error?.message).toContain("io squad move web");
  expect(evidence?.verdict).toBeUndefined();

  expect((await daemon.json<{ items: Squad[] }>("GET", "/api/squads")).items).toMatchObject([{ slug: "web", missing: true }]);
  expect(await daemon.json("GET", "/api/squads/web")).toMatchObject({ missing: true });
  const refused = await delegate(daemon, "web", { task: "More" });
  expect(refused).toMatchObject({ error: { code: "conflict", message: expect.stringContaining("io squad move web <folder>") } });
  const doctor = await daemon.json<{ items: { check: string; found: string; remedy?: string }[] }>("GET", "/api/doctor");
  expect(doctor.items.find(({ check }) => check === "squads")).toMatchObject({
    remedy: expect.stringContaining("io squad move web"),
  });
  await daemon.json("POST", "/api/messages?wait=true", { text: "How is the team?" });
  expect(
    model.requests
      .filter((each) => !characterOf(each))
      .map(systemOf)
      .at(-1),
  ).toContain("missing: nothing can be delegated");

  expect(await daemon.json("PATCH", "/api/squads/web", { projectPath: away })).toMatchObject({ missing: false });
  const after = await ended(daemon, (await delegate(daemon, "web", { task: "Work again" })).id);
  expect(after.status).toBe("done");
  expect(readFileSync(join(away, "a.txt"), "utf8")).toBe("a\n");
  await removeFolder(away);
});

test("a squad can be made isolated at once, and a word that is no isolation is refused", async () => {
  const model = await scriptedModel(() => ({ say: "noted" }));
  const daemon = await daemonOn(model);
  const make = (name: string, more: object) =>
    daemon.json<Squad>("POST", "/api/squads", { name, projectPath: project(), ...more });
  expect(await make("apart", { isolation: "worktree" })).toMatchObject({ slug: "apart", isolation: "worktree" });
  expect(await make("together", { isolation: "none" })).toMatchObject({ isolation: "none" });
  expect(await make("unsaid", {})).toMatchObject({ isolation: "none" });
  expect(await daemon.json<Squad>("GET", "/api/squads/apart")).toMatchObject({ isolation: "worktree" });
  const refused = { error: { code: "bad_request", message: expect.stringContaining("isolation") } };
  expect(await make("moon", { isolation: "moon" })).toMatchObject(refused);
  expect(await daemon.json("GET", "/api/squads/moon")).toMatchObject({ error: { code: "not_found" } });
});
