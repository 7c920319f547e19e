import { afterAll, beforeAll, expect, test } from "vitest";
import type { Approval } from "../../src/protocol/approvals.ts";
import type { BudgetReport } from "../../src/protocol/budgets.ts";
import { providerEnvironment, runIo, startDaemonProcess, startIo, type TestDaemon } from "../support/daemon.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../support/model.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

let daemon: TestDaemon;
let home: string;

beforeAll(async () => {
  const server = await scriptedModel(
    (request) => {
      if (isAfterTool(request)) return { say: "It ran." };
      return lastUserText(request).includes("run it")
        ? { call: [{ tool: "shell", args: { command: "echo done > made.txt" } }] }
        : { say: "Noted." };
    },
    {},
    atTheEnd,
  );
  home = temporaryHome({ approvals: "effects" }, atTheEnd);
  daemon = await startDaemonProcess(home, providerEnvironment(server.url), atTheEnd);
});

/** Starts `io send` and collects its output. */
function send(...args: string[]) {
  const { said, ended } = startIo(["send", ...args], home, {}, home);
  return {
    said,
    ended,
    names: (id: string) => until(`io approval allow ${id}`, () => said.stderr.includes(`io approval allow ${id}`)),
  };
}

const waiting = (where: (approval: Approval) => boolean) =>
  until("a question", async () => {
    const { items } = await daemon.json<{ items: Approval[] }>("GET", "/api/approvals?state=waiting");
    return items.find(where);
  });
const io = (...args: string[]) => runIo(args, home);

test("io send names the question that its message waits for, and the command that decides; --json stays one document", async () => {
  const sent = send("run it", "--conversation", "asked", "--json");
  const { id } = await waiting(({ conversation }) => conversation === "asked");
  await sent.names(id);
  expect(sent.said.stderr).toContain("echo done > made.txt");
  expect(sent.said.stdout).toBe("");
  expect((await io("approval", "allow", id)).code).toBe(0);
  expect(await sent.ended).toBe(0);
  expect(sent.said.stderr).toContain(`${id} is allowed.`);
  expect(JSON.parse(sent.said.stdout)).toMatchObject({ status: "done", reply: "It ran." });
});

test("io send also names the question of an earlier message of the conversation, which holds up its own", async () => {
  const { id: earlier } = await daemon.json<{ id: string }>("POST", "/api/messages", { text: "run it", conversation: "behind" });
  const { id } = await waiting(({ owner }) => owner.id === earlier);
  const sent = send("and now?", "--conversation", "behind");
  await sent.names(id);
  expect((await io("approval", "deny", id)).code).toBe(0);
  expect(await sent.ended).toBe(0);
  expect(sent.said.stdout).toBe("Noted.\n");
});

test("io budget set --off withdraws the question that io send waits for; the limit set next is the limit", async () => {
  await io("budget", "set", "conversation", "--calls", "1");
  await io("send", "one", "--conversation", "limited");
  const sent = send("two", "--conversation", "limited");
  const question = await waiting(({ conversation }) => conversation === "limited");
  await sent.names(question.id);
  const off = await io("budget", "set", "conversation", "--off", "--json");
  expect((JSON.parse(off.stdout) as BudgetReport).limits).toEqual({});
  expect(await sent.ended).toBe(0);
  expect(await daemon.json("GET", `/api/approvals/${question.id}`)).toMatchObject({ state: "withdrawn", decidedBy: null });

  await io("budget", "set", "conversation", "--calls", "3");
  await io("send", "three", "--conversation", "limited");
  const fourth = send("four", "--conversation", "limited");
  const next = await waiting(({ conversation }) => conversation === "limited");
  expect(next.summary).toContain("has used 3 of 3 calls");
  const report = await daemon.json<BudgetReport>("GET", "/api/budgets");
  expect(report.items).toContainEqual(
    expect.objectContaining({ kind: "conversation", limit: { calls: 3 }, left: { calls: 0 }, approval: next.id }),
  );
  await io("budget", "set", "conversation", "--off");
  expect(await fourth.ended).toBe(0);
});

test("a used-up day that another conversation was asked about is named by io send too", async () => {
  await io("budget", "set", "day", "--calls", "1");
  await daemon.json("POST", "/api/messages", { text: "one", conversation: "first" });
  const { id } = await waiting(({ conversation }) => conversation === "first");
  const sent = send("two", "--conversation", "second");
  await sent.names(id);
  await io("budget", "set", "day", "--off");
  expect(await sent.ended).toBe(0);
  expect(sent.said.stderr).toContain(`${id} is withdrawn.`);
});
