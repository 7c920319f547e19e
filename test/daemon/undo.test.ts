import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { ChangeSummary, Difference, UndoResult } from "../../src/protocol/changes.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { providerEnvironment, runIo, startDaemonProcess } from "../support/daemon.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../support/model.ts";
import { characterOf, delegate, ended, project, squadWith } from "../support/squads.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

const FILES = { "a.txt": "one\n", "b.txt": "b\n", ".gitignore": "*.log\n" };
const home = temporaryHome({}, atTheEnd);
const folder = project(FILES, atTheEnd);
const model = await scriptedModel(
  (request) => {
    if (isAfterTool(request)) return { say: "Done." };
    const said = lastUserText(request);
    const command = /run: (.*)/s.exec(said)?.[1];
    if (command !== undefined) return { call: [{ tool: "shell", args: { command } }] };
    const edit = /edit: (\{.*\})/s.exec(said)?.[1];
    if (edit !== undefined) return { call: [{ tool: "file_ops", args: JSON.parse(edit) as Record<string, unknown> }] };
    return { say: characterOf(request) === undefined ? "Noted." : "Nothing to do." };
  },
  {},
  atTheEnd,
);
let daemon = await startDaemonProcess(home, providerEnvironment(model.url), atTheEnd);
/** Runs a command as a person in the project's folder. */
const io = (...args: string[]) => runIo(args, home, {}, undefined, { run: (argv) => ["env", "-C", folder, ...argv] });
const read = (name: string) => readFileSync(join(folder, name), "utf8");
const say = (text: string, conversation = "main"): Promise<Message> => daemon.ask({ text, conversation, folder });
const diffOf = (id: string) => daemon.json<Difference>("GET", `/api/messages/${id}/diff`);
const undo = (id: string) => daemon.json<UndoResult>("POST", `/api/messages/${id}/undo`);
const git = (...args: string[]) => execFileSync("git", args, { cwd: folder, encoding: "utf8" });

test("what commands and edits of a message did is shown and undone, and done again", async () => {
  const index = readFileSync(join(folder, ".git/index"));
  const nothing = await say("just talk");
  expect(await diffOf(nothing.id)).toEqual({ text: "", files: [], notes: [], undone: false });
  expect(git("for-each-ref", "refs/io")).toBe("");

  const { id } = await say("run: echo two > a.txt && mkdir new && echo new > new/n.txt && rm b.txt && echo log > x.log");
  const diff = await diffOf(id);
  expect(diff.files).toMatchObject([
    { folder, path: "a.txt", state: "changed" },
    { folder, path: "b.txt", state: "deleted" },
    { folder, path: "new/n.txt", state: "added" },
  ]);
  expect(diff.text).toContain("diff --git a/a.txt b/a.txt");
  expect(diff.text).toContain("-one\n+two");
  writeFileSync(join(folder, "new/n.txt"), "by a person\n");
  const undone = await undo(id);
  expect(undone).toMatchObject({ id, undone: true, kept: [{ folder, path: "new/n.txt", why: "it was changed since" }] });
  expect([read("a.txt"), read("b.txt"), read("new/n.txt"), read("x.log")]).toEqual(["one\n", "b\n", "by a person\n", "log\n"]);
  expect(undone.notes.join()).toContain(".gitignore");
  expect(await undo(id)).toMatchObject({ undone: false });
  expect(read("a.txt")).toBe("two\n");
  await undo(id);
  expect(readFileSync(join(folder, ".git/index")).equals(index)).toBe(true);
  expect(git("stash", "list")).toBe("");
  expect((await daemon.fetch("/api/messages/m_nobody/diff")).status).toBe(404);
  expect((await daemon.fetch(`/api/tasks/${id}/undo`, { method: "POST" })).status).toBe(404);
  expect((await daemon.fetch(`/api/messages/${nothing.id}/undo`, { method: "POST" })).status).toBe(409);
});

test("an edit tells the file before and after at its end; the commands undo the latest here, and ask before", async () => {
  const follower = await daemon.follow({ conversation: "edits" });
  const { id } = await say('edit: {"operation":"edit","path":"a.txt","edits":[{"old":"one","new":"1"}]}', "edits");
  const tools = follower.of("message.tool").filter(({ body }) => body.id === id);
  expect(tools.at(-1)?.body).toMatchObject({
    state: "done",
    diff: { path: join(folder, "a.txt"), before: "one\n", after: "1\n" },
  });
  expect(tools.filter(({ body }) => body.diff !== undefined)).toHaveLength(1);
  follower.leave();
  const made = await say('edit: {"operation":"write","path":"made.txt","content":"made\\n"}', "edits");
  const listed = await daemon.json<{ items: ChangeSummary[] }>("GET", "/api/changes?conversation=edits");
  expect(listed.items).toMatchObject([
    { id: made.id, kind: "message", folders: [folder], files: 1, undone: false },
    { id, files: 1 },
  ]);
  expect(await io("undo")).toMatchObject({ code: 2, stderr: expect.stringContaining("--yes") });
  expect((await io("diff")).stdout).toContain("+made");
  expect((await io("undo", "--yes")).stdout).toContain(`Undone: ${made.id}`);
  expect(existsSync(join(folder, "made.txt"))).toBe(false);
  const result = JSON.parse((await io("undo", id, "--yes", "--json")).stdout) as UndoResult;
  expect(result).toMatchObject({ id, undone: true, files: [{ path: "a.txt", state: "changed" }] });
  expect(read("a.txt")).toBe("one\n");
});

test("a task is undone as a message is, though not while it runs; one on a branch of its own changed nothing here", async () => {
  const [agent = ""] = await squadWith(daemon, folder, "web", ["Engineer"]);
  const task = await delegate(daemon, "web", {
    task: "run: echo task > t.txt; while [ ! -e .git/go ]; do sleep 0.05; done",
    agent,
  });
  await until("the task to have written", () => existsSync(join(folder, "t.txt")));
  const refused = await daemon.fetch(`/api/tasks/${task.id}/undo`, { method: "POST" });
  expect([refused.status, await refused.text()]).toEqual([409, expect.stringContaining("still runs")]);
  writeFileSync(join(folder, ".git/go"), "");
  await ended(daemon, task.id);
  const diff = await daemon.json<Difference>("GET", `/api/tasks/${task.id}/diff`);
  expect(diff).toMatchObject({ text: expect.stringContaining("+task"), files: [{ path: "t.txt", state: "added" }] });
  expect(await daemon.json<UndoResult>("POST", `/api/tasks/${task.id}/undo`)).toMatchObject({ undone: true });
  expect(existsSync(join(folder, "t.txt"))).toBe(false);

  await daemon.json("PATCH", "/api/squads/web", { isolation: "worktree" });
  const apart = await delegate(daemon, "web", { task: "run: echo apart > apart.txt", agent });
  await ended(daemon, apart.id);
  const branch = await daemon.json<Difference>("GET", `/api/tasks/${apart.id}/diff`);
  expect(branch).toMatchObject({ text: expect.stringContaining("+apart"), files: [{ path: "apart.txt", state: "added" }] });
  const kept = await daemon.fetch(`/api/tasks/${apart.id}/undo`, { method: "POST" });
  expect([kept.status, await kept.text()]).toEqual([409, expect.stringContaining(`on the branch io/${apart.id}`)]);
});

test("a daemon that is killed in the middle of a command knows afterwards what it changed, and undoes it", async () => {
  await daemon.json("POST", "/api/messages", { text: "run: echo killed > k.txt; sleep 60", conversation: "killed", folder });
  await until("the command to have written", () => existsSync(join(folder, "k.txt")));
  await daemon.kill("SIGKILL");
  daemon = await startDaemonProcess(home, providerEnvironment(model.url), atTheEnd);
  const message = await until("the message to end", async () => {
    const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages?conversation=killed");
    return items.find(({ finishedAt }) => finishedAt !== null);
  });
  const { files, notes } = await diffOf(message!.id);
  expect(files).toMatchObject([{ path: "k.txt", state: "added" }]);
  expect(notes.join()).toContain("was stopped while this went on");
  await undo(message!.id);
  expect(existsSync(join(folder, "k.txt"))).toBe(false);
  expect((await io("clean", "--older-than", "0h", "--yes")).stdout).toContain("records for undo removed");
  expect(git("for-each-ref", "refs/io")).toBe("");
  expect(readdirSync(join(home, "undo"))).toEqual([]);
});
