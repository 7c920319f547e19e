import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Approval } from "../../src/protocol/approvals.ts";
import type { Message, MessageProgress } from "../../src/protocol/messages.ts";
import type { Task } from "../../src/protocol/squads.ts";
import { type Follower, providerEnvironment, runIo, startDaemonProcess, startIo, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../support/model.ts";
import { callText } from "../support/orchestrator.ts";
import { delegate, ended, project, squadWith } from "../support/squads.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

let daemon: TestDaemon;
let home: string;

const rule = (match: string, then: string) => ({ tool: "shell", match, then });

beforeAll(async () => {
  const server = await scriptedModel(
    (request) => {
      if (isAfterTool(request)) return { say: "It ended." };
      // The report of a task also contains its text.
      const asked = /(?:\[via api\]|Task t_\w+:) call (\w+) (\{.*\})/s.exec(lastUserText(request));
      if (!asked) return { say: "Noted." };
      const [, tool = "", args = "{}"] = asked;
      return { call: [{ tool, args: JSON.parse(args) }] };
    },
    {},
    atTheEnd,
  );
  const approvalRules = [rule("rm *", "ask"), rule("mv *", "deny")];
  home = temporaryHome({ mode: "full", approvalRules }, atTheEnd);
  daemon = await startDaemonProcess(home, providerEnvironment(server.url), atTheEnd);
  await squadWith(daemon, project({ "README.md": "# A\n" }, atTheEnd), "crew", ["Engineer"]);
}, 60_000);

const shell = (command: string) => callText("shell", { command });
const waiting = () =>
  until("a question", async () => {
    const { items } = await daemon.json<{ items: Approval[] }>("GET", "/api/approvals?state=waiting");
    return items[0];
  });
const deny = async () => void (await runIo(["approval", "deny", (await waiting()).id], home));
const expire = async () => {
  const { expiresAt } = await waiting();
  expect(Date.parse(expiresAt)).toBeLessThan(Date.now() + 60_000);
};
const states = async (path: string) =>
  (await daemon.json<{ items: { state: string }[] }>("GET", `${path}/calls`)).items.map(({ state }) => state);
const told = (followed: Follower, type: string, id: string) =>
  followed.of(type).flatMap(({ body }) => (body.id === id && body.tool !== undefined ? [body.state] : []));

const CASES: [string, () => string, (() => Promise<void>) | undefined, string][] = [
  ["that a rule denies", () => shell("mv a b"), undefined, "✗ shell  mv a b  refused"],
  ["that a person denies", () => shell("rm -f denied"), deny, "✗ shell  rm -f denied  refused"],
  ["that nobody answers in time", () => shell("rm -f expired"), expire, "✗ shell  rm -f expired  refused"],
  [
    "that wants a file of IO's own",
    () => callText("file_ops", { operation: "read", path: join(home, "token") }),
    undefined,
    "refused",
  ],
  ["that fails", () => callText("file_ops", { operation: "read", path: "/nowhere/at/all" }), undefined, "failed"],
];

test.each(CASES)(
  "a call %s has one mark and one word: in io send, while its turn runs, in the journal and in a task's record",
  { timeout: 60_000 },
  async (name, text, answer, line) => {
    const word = line.split("  ").at(-1)!;
    const conversation = name.replaceAll(/\W/g, "-");
    const followed = await daemon.follow();
    if (answer === expire) await daemon.json("PATCH", "/api/config", { approvalExpiresMs: 1_000 });
    const sent = startIo(["send", text(), "--conversation", conversation], home);
    await answer?.();
    expect(await sent.ended).toBe(0);
    expect(sent.said.stderr).toContain(line);
    expect(sent.said.stderr).toContain(`  ${word}\n`);
    const { items } = await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${conversation}`);
    const { id } = items[0]!;
    expect(await states(`/api/messages/${id}`)).toEqual([word]);
    expect(told(followed, "message.tool", id).at(-1)).toBe(word);

    const { id: task } = await delegate(daemon, "crew", { task: text() });
    await answer?.();
    await ended(daemon, task);
    expect(await states(`/api/tasks/${task}`)).toEqual([word]);
    expect(told(followed, "task.progress", task).at(-1)).toBe(word);
    expect((await runIo(["task", "show", task], home)).stdout).toMatch(new RegExp(`^ {2}[\\d:]+ ✗ .*  ${word}$`, "m"));
    await daemon.json("PATCH", "/api/config", { approvalExpiresMs: null });
  },
);

test("a command that is cancelled is unknown in the journal, and nowhere told to have ended", { timeout: 60_000 }, async () => {
  const followed = await daemon.follow();
  const text = shell("echo begun; sleep 60");
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text, conversation: "cancelled" });
  await until("the command to run", async () => {
    const { tools } = await daemon.json<MessageProgress>("GET", `/api/messages/${id}/progress`);
    return tools[0]?.output?.includes("begun");
  });
  await daemon.json("POST", `/api/messages/${id}/cancel`);
  await until("the journal", async () => (await states(`/api/messages/${id}`))[0] === "unknown");
  await until("the end", () => followed.of("message.finished").some(({ body }) => body.id === id));
  // A client that never hears the end of a call shows it as unknown.
  expect(["running", "unknown"]).toContain(told(followed, "message.tool", id).at(-1));
});

test("a task that is cancelled in the middle of a call has it as unknown in its record", { timeout: 60_000 }, async () => {
  const followed = await daemon.follow();
  const { id } = await delegate(daemon, "crew", { task: shell("echo begun; sleep 60") });
  await until("the command to run", () =>
    followed.of("task.progress").some(({ body }) => body.id === id && String(body.output).includes("begun")),
  );
  await daemon.json<Task>("POST", `/api/tasks/${id}/cancel`);
  await until("the journal", async () => (await states(`/api/tasks/${id}`))[0] === "unknown");
  const { stdout } = await runIo(["task", "show", id], home);
  expect(stdout).toMatch(/ ! .* {2}unknown$/m);
  expect(stdout).toMatch(/^ {2}! \$ echo begun; sleep 60 → unknown$/m);
});
