import { existsSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import { approvalsOf, asked, decide, finishedMessage } from "../support/approvals.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { stepwise } from "../support/orchestrator.ts";

/** Every program that the commands below need, but not bubblewrap. */
const PROGRAMS = ["cat", "ls", "touch", "rm", "sh", "git"];

const model = await scriptedModel(stepwise, undefined, afterAll);
const userHome = realpathSync(temporaryFolder(afterAll));
const project = join(userHome, "project");
const bin = temporaryFolder(afterAll);
mkdirSync(project);
writeFileSync(join(project, "read.txt"), "words to read");
for (const name of PROGRAMS) symlinkSync(`/usr/bin/${name}`, join(bin, name));
// A home that is reached through a symbolic link is still the same home.
const linkedHome = join(temporaryFolder(afterAll), "home");
symlinkSync(userHome, linkedHome);
const home = temporaryHome({ mode: "auto" }, afterAll);
const daemon = await startDaemonProcess(home, { ...providerEnvironment(model.url), HOME: linkedHome, PATH: bin }, afterAll);

type Calls = [string, unknown][];
let conversations = 0;
const say = async (calls: Calls) => {
  conversations += 1;
  const message = { text: `calls ${JSON.stringify(calls)}`, conversation: `c${conversations}`, folder: project };
  return (await daemon.json<Message>("POST", "/api/messages", message)).id;
};
const reply = async (calls: Calls) => (await finishedMessage(daemon, await say(calls))).reply ?? "";
const setMode = (mode: string) => daemon.json("PATCH", "/api/config", { mode });
const shell = (command: string): [string, unknown] => ["shell", { command }];
const write = (path: string): [string, unknown] => ["file_ops", { operation: "write", path, content: "x" }];
const isMade = (name: string) => existsSync(join(project, name));

test("in auto what is known to read alone is done and everything else is asked for", async () => {
  expect(await reply([shell("ls; cat read.txt | cat")])).toContain("words to read");
  expect(await reply([write("by-file-ops.txt")])).toContain("by-file-ops.txt");
  expect(isMade("by-file-ops.txt")).toBe(true);
  expect(await approvalsOf(daemon)).toEqual([]);
  mkdirSync(join(userHome, ".ssh"));
  writeFileSync(join(userHome, ".ssh/id"), "a private key");
  symlinkSync("../.ssh", join(project, "keys"));
  const secrets = [`cat ${home}/token`, "cat ~/.ssh/id", "cat keys/id", `cat ${userHome}/.ssh/id`];
  for (const command of ["touch unwalled.txt", "ls > listed.txt", "git status", ...secrets]) {
    const id = await say([shell(command)]);
    const [question] = await asked(daemon);
    expect(question).toMatchObject({ command, rule: "wall: there is no sandbox on this machine, and it may do more than read" });
    await decide(daemon, question!.id, { decision: command.startsWith("touch") ? "allow" : "deny" });
    await finishedMessage(daemon, id);
  }
  expect([isMade("unwalled.txt"), isMade("listed.txt")]).toEqual([true, false]);
  const id = await say([["file_ops", { operation: "read", path: "~/.ssh/id" }]]);
  const [question] = await asked(daemon);
  expect(question!.rule).toBe(`wall: it would read ${userHome}/.ssh/id, where keys or passwords are kept`);
  await decide(daemon, question!.id, { decision: "deny" });
  expect((await finishedMessage(daemon, id)).reply).not.toContain("a private key");
});

test("in plan nothing is changed, and nobody is asked", async () => {
  await setMode("plan");
  const before = (await approvalsOf(daemon)).length;
  const told = await reply([
    ["file_ops", { operation: "read", path: "read.txt" }],
    shell("touch planned.txt"),
    write("planned-too.txt"),
  ]);
  expect(told).toContain("words to read");
  expect((model.requests.at(-1)?.tools ?? []).map(({ function: { name } }) => name)).not.toContain("shell");
  expect([isMade("planned.txt"), isMade("planned-too.txt")]).toEqual([false, false]);
  expect(await approvalsOf(daemon)).toHaveLength(before);
});

test("in ask every command waits for a person, those that read alone too, and a denied one never runs", async () => {
  await setMode("ask");
  const id = await say([shell("ls"), write("asked.txt"), shell("touch denied.txt")]);
  for (const tool of ["shell", "file_ops", "shell"]) {
    const [question] = await asked(daemon);
    expect(question!.tool).toBe(tool);
    expect([isMade("asked.txt") && question!.command === undefined, isMade("denied.txt")]).toEqual([false, false]);
    await decide(daemon, question!.id, { decision: question!.command?.includes("denied") ? "deny" : "allow" });
  }
  const { reply: told } = await finishedMessage(daemon, id);
  expect(told).toContain("read.txt");
  expect([isMade("asked.txt"), isMade("denied.txt")]).toEqual([true, false]);
});

test("in full nobody is asked, in the project and outside of it", async () => {
  await setMode("full");
  const before = (await approvalsOf(daemon)).length;
  const outside = join(userHome, "outside.txt");
  await reply([shell(`touch full.txt ${outside}`), write(join(userHome, "outside-too.txt"))]);
  expect([isMade("full.txt"), existsSync(outside), existsSync(join(userHome, "outside-too.txt"))]).toEqual([true, true, true]);
  expect(await approvalsOf(daemon)).toHaveLength(before);
});
