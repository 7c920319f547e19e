import { afterAll, beforeAll, expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import { type Follower, providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../support/model.ts";
import { delegate, ended as finishedTask, squadWith } from "../support/squads.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

let daemon: TestDaemon;
let home: string;
let folder: string;
const SECRET = "scripted-key-0123456789";

beforeAll(async () => {
  const server = await scriptedModel(
    (request) => {
      if (isAfterTool(request)) return { say: "It ended." };
      const command = /run: (.*)/s.exec(lastUserText(request))?.[1] ?? "true";
      return { call: [{ tool: "shell", args: { command } }] };
    },
    {},
    atTheEnd,
  );
  home = temporaryHome({ mode: "full" }, atTheEnd);
  folder = temporaryFolder(atTheEnd);
  daemon = await startDaemonProcess(home, providerEnvironment(server.url), atTheEnd);
});

const of = (follower: Follower, type: string, id: string) => follower.of(type).filter(({ body }) => body.id === id);
const printed = (follower: Follower, id: string) =>
  of(follower, "message.tool", id)
    .map(({ body }) => body.output ?? "")
    .join("");

async function begin(command: string, conversation: string) {
  const follower = await daemon.follow({ conversation });
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text: `run: ${command}`, conversation });
  return { follower, id, calls: () => of(follower, "message.tool", id).map(({ body }) => body) };
}

test("what a command prints is told while it runs, without secrets, and its exit code at its end", async () => {
  const gate = `${folder}/go`;
  const { follower, id, calls } = await begin(
    `echo first; printf 'half of ${SECRET.slice(0, 9)}'; sleep 0.4; echo '${SECRET.slice(9)}'; while [ ! -e '${gate}' ]; do sleep 0.05; done; exit 7`,
    "told",
  );
  await until("its output while it runs", () => printed(follower, id).includes("half of"));
  expect(calls().some(({ state }) => state === "done")).toBe(false);
  expect(calls().find(({ args }) => args !== undefined)).toMatchObject({
    tool: "shell",
    args: expect.stringMatching(/^echo first;/),
  });
  const progress = await daemon.json<{ tools: unknown[] }>("GET", `/api/messages/${id}/progress`);
  expect(progress.tools).toEqual([expect.objectContaining({ state: "started", output: expect.stringContaining("first\n") })]);
  await runIo(["send", `run: touch '${gate}'`, "--conversation", "other"], home);
  await until("the end", () => of(follower, "message.finished", id).length === 1);
  expect(calls().at(-1)).toMatchObject({ state: "done", exitCode: 7 });
  expect(new Set(calls().map(({ callId }) => callId)).size).toBe(1);
  expect(printed(follower, id)).toBe("first\nhalf of [secret]\n");
});

test("a flood is told in few and bounded pieces", async () => {
  const { follower, id, calls } = await begin("seq 1 400000", "flood");
  await until("the end", () => of(follower, "message.finished", id).length === 1, 30_000);
  const [first, last] = [calls()[0], of(follower, "message.finished", id)[0]];
  const tookMs = last!.at - of(follower, "message.tool", id)[0]!.at;
  const pieces = calls().filter(({ output }) => output !== undefined);
  expect(first).toBeDefined();
  expect(pieces.length).toBeGreaterThan(0);
  expect(pieces.length).toBeLessThanOrEqual(2 + tookMs / 200);
  expect(Math.max(...pieces.map(({ output }) => String(output).length))).toBeLessThanOrEqual(4_000);
  expect(printed(follower, id)).toContain("400000\n");
});

test("what was seen of a command stays in the journal when its message is cancelled", async () => {
  const { follower, id } = await begin("echo seen before the end; sleep 60", "cancelled");
  await until("its output", () => printed(follower, id).includes("seen before the end"));
  await daemon.json("POST", `/api/messages/${id}/cancel`);
  const ended = await until("the end", async () => {
    const message = await daemon.json<Message>("GET", `/api/messages/${id}`);
    return message.finishedAt !== null && message;
  });
  expect(ended.status).toBe("cancelled");
  const { items } = await until("the journal", async () => {
    const calls = await daemon.json<{ items: { state: string; result: string | null }[] }>("GET", `/api/messages/${id}/calls`);
    return calls.items[0]?.state !== "begun" && calls;
  });
  expect(items).toMatchObject([{ state: "unknown", result: expect.stringContaining("seen before the end") }]);
});

test("io send shows how each call ended, with the mark that every channel has for it", async () => {
  const failed = await runIo(["send", "run: exit 7", "--conversation", "marks"], home);
  expect(failed).toMatchObject({ code: 0, stdout: "It ended.\n", stderr: "✗ shell  exit 7  exit 7\n" });
  expect((await runIo(["send", "run: true", "--conversation", "marks"], home)).stderr).toBe("✓ shell  true\n");
});

test("a task's progress carries the output of its commands, and a task without a test is done, unproven", async () => {
  await squadWith(daemon, folder, "crew", ["Engineer"]);
  const follower = await daemon.follow();
  const { id } = await delegate(daemon, "crew", { task: "run: echo from the task" });
  const task = await finishedTask(daemon, id);
  expect(task).toMatchObject({ status: "done", evidence: { proven: false } });
  const calls = of(follower, "task.progress", id).map(({ body }) => body);
  expect(calls.find(({ output }) => output !== undefined)).toMatchObject({
    callId: expect.any(String),
    output: "from the task\n",
  });
  expect(calls.find(({ kind, state }) => kind === "tool" && state === "done")).toMatchObject({ exitCode: 0 });
  expect((await runIo(["task", "list"], home)).stdout).toContain(
    `${id}  ! done, unproven (claimed done; no test command was run)`,
  );
  const told = await until("the report", async () => {
    const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages?conversation=main");
    return items.find(({ text }) => text.includes(id));
  });
  expect(told.text).toContain("has ended: done, unproven: claimed done; no test command was run.");
});
