import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { BackgroundList } from "../../src/protocol/background.ts";
import type { Difference } from "../../src/protocol/changes.ts";
import { asked, decide, finishedMessage } from "../support/approvals.ts";
import { providerEnvironment, runIo, startDaemonProcess } from "../support/daemon.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { stepwise } from "../support/orchestrator.ts";
import { ensureProgram } from "../support/program.ts";
import { delegate, ended, squadWith } from "../support/squads.ts";
import { until } from "../support/until.ts";

await ensureProgram("bwrap", "bubblewrap");
const { atTheEnd, end } = collectEndings();
afterAll(end);

type Calls = [string, unknown][];
const home = temporaryHome({ mode: "auto" }, atTheEnd);
const userHome = realpathSync(temporaryFolder(atTheEnd));
const project = join(userHome, "project");
mkdirSync(project);
execFileSync("git", ["init", "-q", project]);
writeFileSync(
  join(project, "server.js"),
  `require("node:http").createServer((q, a) => { console.log("asked for " + q.url); a.end("served"); }).listen(0, "127.0.0.1", function () { console.log("port " + this.address().port); });`,
);
/**
 * Makes an agent's prompt look like a message to the orchestrator, so that one model serves both: the prompt contains the
 * task's text.
 */
const model = await scriptedModel(
  (request, ...rest) => {
    const messages = request.messages.map((message) =>
      message.role === "user" && typeof message.content === "string"
        ? { ...message, content: message.content.replace(/Task (t_\w+): /, "[via api] ") }
        : message,
    );
    return stepwise({ ...request, messages }, ...rest);
  },
  {},
  atTheEnd,
);
let daemon = await startDaemonProcess(home, { ...providerEnvironment(model.url), HOME: userHome }, atTheEnd);

const bash = (command: string, more: Record<string, unknown> = {}): Calls[number] => [
  "shell",
  { command, background: true, ...more },
];
const output = (args: Record<string, unknown> = {}): Calls[number] => ["shell_output", args];
const say = (calls: Calls, conversation: string) =>
  daemon.json<{ id: string }>("POST", "/api/messages", { text: `calls ${JSON.stringify(calls)}`, conversation, folder: project });
const reply = async (calls: Calls, conversation: string) =>
  (await finishedMessage(daemon, (await say(calls, conversation)).id)).reply ?? "";
const idIn = (text: string) => /b_[0-9a-f]{8}/.exec(text)?.[0] ?? "";

const commandOf = (pid: string) => {
  try {
    const isDead = /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
    return isDead ? "" : readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    // The process has ended.
    return "";
  }
};
const running = (mark: string) => readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && commandOf(pid).includes(mark));
let marks = 0;
/** A command that leaves its process group and outlives any test, and the mark that identifies its processes. */
function lingering() {
  marks += 1;
  const mark = `io-background-${process.pid}-${marks}`;
  return { mark, command: `setsid sh -c 'sleep 600; : ${mark}' & sh -c 'echo up; sleep 600; : ${mark}'` };
}
const isGone = (mark: string) => until(`the end of ${mark}`, () => running(mark).length === 0);

test("in auto a server goes on after its turn, its output is read by lines, and shell_stop ends it", async () => {
  const started = await reply([bash("node server.js")], "server");
  const id = idIn(started);
  expect(started).toContain(`${id} runs in the background`);
  const shown = await reply([output({ id, from: 1, wait_secs: 30 })], "server");
  const port = /port (\d+)/.exec(started + shown)![1];
  expect(await (await fetch(`http://127.0.0.1:${port}/page`)).text()).toBe("served");
  const later = await reply([output({ id, from: 2, wait_secs: 30 })], "server");
  expect(later).toMatch(/asked for \/page[\s\S]*\[lines 2 to 2 of 2\.\]/);
  expect(later).not.toContain("port ");
  expect(await reply([output()], "server")).toMatch(new RegExp(`${id} has been running for \\d+ s: \\$ node server.js`));

  expect(await reply([output(), output({ id }), ["shell_stop", { id }]], "another")).toMatch(
    /No command runs in the background\.[\s\S]*No background command of this work[\s\S]*No background command of this work/,
  );
  expect(await reply([["shell_stop", { id }], output({ id })], "server")).toMatch(
    /Stopped, with everything[\s\S]*was stopped, after/,
  );
  await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
});

test("a person sees what runs, since when and its last lines, and stops it, by command and over the API", async () => {
  const { mark, command } = lingering();
  const id = idIn(await reply([bash(`echo first; echo scripted-key-0123456789; ${command}`)], "watched"));
  await until("its output", async () => (await runIo(["background", "show", id], home)).stdout.includes("up"));
  const { items } = await daemon.json<BackgroundList>("GET", "/api/background?conversation=watched");
  expect(items).toMatchObject([{ id, folder: project, state: "running", owner: { kind: "message" }, exitCode: null, total: 3 }]);
  expect(Date.now() - Date.parse(items[0]!.startedAt)).toBeGreaterThan(0);
  const listed = await runIo(["background"], home);
  expect(listed.code).toBe(2);
  const shown = (await runIo(["background", "list"], home)).stdout;
  expect(shown).toMatch(new RegExp(`${id}  running for \\d+ s  conversation watched, in ${project}`));
  expect(shown).toContain("  first\n");
  expect(shown).not.toContain("scripted-key-0123456789");
  expect((await runIo(["status"], home)).stdout).toContain("Commands in the background: 1 (io background list)");
  const missing = await runIo(["background", "stop", "b_nothing"], home);
  expect(missing).toMatchObject({ code: 1, stderr: expect.stringContaining("No command in the background has this id.") });
  expect((await runIo(["background", "stop", id], home)).stdout).toContain(`${id} was stopped, with everything it had started.`);
  await isGone(mark);
  expect((await runIo(["background", "list"], home)).stdout).toBe("No command runs in the background.\n");
  expect((await daemon.json<BackgroundList>("GET", "/api/background")).items.at(-1)).toMatchObject({ id, state: "stopped" });
  const told = await daemon.fetch("/api/events", { headers: { "last-event-id": "0" } });
  const seen = await readUntil(told, "background.finished");
  expect(seen).toMatch(/event: background\.started[\s\S]*event: background\.finished/);
});

/** Reads a stream until it contains `wanted`. Returns the text so far. */
async function readUntil(response: Response, wanted: string): Promise<string> {
  let text = "";
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (text.includes(wanted)) return text;
  }
  return text;
}

test("one that ends at once is told with its exit code, and the sandbox holds it as any other", async () => {
  const outside = join(userHome, "outside.txt");
  const told = await reply([bash("exit 3"), bash(`echo x > ${outside}`)], "short");
  expect(told).toMatch(/^exit code: 3/);
  expect(told).toContain("The sandbox refused this");
  expect(existsSync(outside)).toBe(false);
  const id = idIn(await reply([bash("sleep 1.5; echo scripted-key-0123456789; exit 4")], "short"));
  const end = await reply([output({ id, wait_secs: 60 }), output({ id, wait_secs: 60 })], "short");
  expect(end).toMatch(/ended, exit code: 4, after/);
  expect(end).not.toContain("scripted-key-0123456789");
});

test("in ask a person is asked first, and a denied one never runs", async () => {
  await daemon.json("PATCH", "/api/conversations/asking", { mode: "ask", folder: project });
  const { id } = await say([bash("touch denied.txt; sleep 100")], "asking");
  const [question] = await asked(daemon);
  expect(question).toMatchObject({ tool: "shell", command: "touch denied.txt; sleep 100" });
  await decide(daemon, question!.id, { decision: "deny" });
  expect((await finishedMessage(daemon, id)).reply).toContain("denied it");
  expect(existsSync(join(project, "denied.txt"))).toBe(false);
});

test("cancelling its message, deleting its conversation and stopping everything end a command with all it started", async () => {
  const [first, second, third, fourth] = [lingering(), lingering(), lingering(), lingering()];
  const { id } = await say([bash(first.command), ["shell", { command: "sleep 300", timeout_secs: 400 }]], "cancelled");
  await until("two processes", () => running(first.mark).length >= 2);
  await reply([bash(second.command)], "deleted");
  await reply([bash(third.command)], "kept");
  expect(running(second.mark).length).toBeGreaterThan(1);
  await daemon.json("POST", `/api/messages/${id}/cancel`);
  await isGone(first.mark);
  expect(running(second.mark).length).toBeGreaterThan(1);
  // In a message that is already answered, only the background command is left to end.
  const answered = await say([bash(fourth.command)], "answered");
  await finishedMessage(daemon, answered.id);
  expect(running(fourth.mark).length).toBeGreaterThan(1);
  expect(await daemon.json("POST", `/api/messages/${answered.id}/cancel`)).toMatchObject({ id: answered.id, status: "done" });
  await isGone(fourth.mark);
  expect((await daemon.fetch(`/api/messages/${answered.id}/cancel`, { method: "POST" })).status).toBe(409);
  await daemon.json("DELETE", "/api/conversations/deleted");
  await isGone(second.mark);
  expect(running(third.mark).length).toBeGreaterThan(1);
  await daemon.json("POST", "/api/stop");
  await isGone(third.mark);
});

test("a task's command ends with the task, before its files are looked at, and what it wrote is undone with it", async () => {
  const { mark, command } = lingering();
  await squadWith(daemon, project, "server", ["Engineer"]);
  const calls: Calls = [
    bash(`${command.replace("echo up", "echo up; for i in $(seq 600); do echo $i > ticks.txt; sleep 0.05; done")}`),
    ["shell", { command: "while [ ! -e ticks.txt ]; do sleep 0.05; done; cat ticks.txt" }],
  ];
  const { id } = await delegate(daemon, "server", { task: `calls ${JSON.stringify(calls)}` });
  const task = await ended(daemon, id);
  expect(task.status).toBe("done");
  expect(running(mark)).toEqual([]);
  expect(task.evidence?.filesChanged).toContain("ticks.txt");
  const diff = await daemon.json<Difference>("GET", `/api/tasks/${id}/diff`);
  expect(diff.files).toMatchObject([{ path: "ticks.txt", state: "added" }]);
});

test("what a command wrote during its turn is the message's, and a diff need not wait for its end", async () => {
  const { mark, command } = lingering();
  const script = `sleep 1.5; echo late > late.txt; ${command}`;
  const { id } = await say([bash(script), ["shell", { command: "while [ ! -e late.txt ]; do sleep 0.05; done" }]], "diffs");
  await finishedMessage(daemon, id);
  const diff = await daemon.json<Difference>("GET", `/api/messages/${id}/diff`);
  expect(diff.files).toMatchObject([{ path: "late.txt", state: "added" }]);
  expect(running(mark).length).toBeGreaterThan(0);
  await daemon.json("POST", "/api/stop");
  await isGone(mark);
});

test("nothing of it outlives the daemon, also one that is killed where there is no sandbox", async () => {
  const first = lingering();
  await reply([bash(first.command)], "ending");
  expect(running(first.mark).length).toBeGreaterThan(1);
  await daemon.kill("SIGTERM");
  expect(running(first.mark)).toEqual([]);

  const bin = join(userHome, "bin");
  mkdirSync(bin);
  for (const name of ["node", "git", "bash", "sh", "sleep", "setsid", "seq", "env"])
    execFileSync("ln", [
      "-s",
      execFileSync("/bin/sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim(),
      join(bin, name),
    ]);
  writeFileSync(join(home, "config.json"), JSON.stringify({ mode: "full" }));
  const env = { ...providerEnvironment(model.url), HOME: userHome, PATH: bin };
  daemon = await startDaemonProcess(home, env, atTheEnd);
  const second = lingering();
  await reply([bash(second.command)], "killed");
  expect(running(second.mark).length).toBeGreaterThan(1);
  await daemon.kill("SIGKILL");
  daemon = await startDaemonProcess(home, env, atTheEnd);
  await isGone(second.mark);
  expect(await reply([output()], "killed")).toContain("No command runs in the background.");
});
