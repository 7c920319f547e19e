import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { ConversationInfo } from "../../src/protocol/conversations.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { providerEnvironment, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { project } from "../support/squads.ts";

const home = temporaryHome({}, afterAll);
const model = await scriptedModel((request) => ({ say: `Heard: ${lastUserText(request)}` }), {}, afterAll);
const daemon = await startDaemonProcess(home, providerEnvironment(model.url), afterAll);
const checkout = project({ "src/main.go": "package main\n" }, afterAll);
const chat = (said: string, args: string[], cwd: string) => runIo(args, home, {}, said, { run: (argv) => [...argv], cwd });
const saidIn = async (name: string) =>
  (await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${name}`)).items.map(({ text }) => text).reverse();
const all = async () => (await daemon.json<{ items: ConversationInfo[] }>("GET", "/api/conversations")).items;

test("io in a project talks in its conversation, elsewhere in main; -c, --resume and --conversation name others", async () => {
  expect(await chat("in the project", [], join(checkout, "src"))).toMatchObject({ code: 0, stderr: "" });
  const [own] = await all();
  expect(own).toMatchObject({ folder: checkout, title: "in the project" });
  await chat("nowhere special", [], home);
  expect(await saidIn("main")).toEqual(["nowhere special"]);

  await chat("about something else", ["--conversation", "aside"], checkout);
  expect((await all())[0]).toMatchObject({ name: "aside", folder: checkout });
  await chat("more of that", ["-c"], join(checkout, "src"));
  expect(await saidIn("aside")).toEqual(["about something else", "more of that"]);
  await chat("back home", [], checkout);
  await chat("and on", ["--resume", own!.name], home);
  expect(await saidIn(own!.name)).toEqual(["in the project", "back home", "and on"]);
  await chat("outside again", ["--continue"], home);
  expect(await saidIn("main")).toEqual(["nowhere special", "outside again"]);
});

test("to resume what is not there, or without a terminal to choose in, is an error; two wishes are one too many", async () => {
  const before = await all();
  expect(await chat("hello", ["--resume", "nowhere"], checkout)).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringContaining("There is no conversation called nowhere"),
  });
  expect(await chat("hello", ["--resume"], checkout)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("io conversation list"),
  });
  expect(await chat("hello", ["-c", "--conversation", "x"], checkout)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("only one of"),
  });
  expect(await chat("hello", ["--conversation", "no name!"], checkout)).toMatchObject({ code: 2 });
  expect(await all()).toEqual(before);
  // A command keeps its own option of the same name.
  expect(await runIo(["send", "hello", "--conversation", "sent"], home)).toMatchObject({ code: 0 });
  expect(await saidIn("sent")).toEqual(["hello"]);
});

test("a folder that vanished under the person opens main", async () => {
  const gone = join(checkout, "gone");
  mkdirSync(gone);
  const left = await runIo([], home, {}, "still here", {
    run: (argv) => ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", ...argv],
    cwd: gone,
  });
  expect(left.code).toBe(0);
  expect(await saidIn("main")).toContain("still here");
});
