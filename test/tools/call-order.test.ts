import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import { asked, decide, finishedMessage } from "../support/approvals.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../support/model.ts";

/** Asks for all calls in one answer, and repeats what came of them. */
const model = await scriptedModel(
  (request) => {
    if (isAfterTool(request)) {
      const said = request.messages.slice(request.messages.findLastIndex(({ role }) => role === "user"));
      return { say: JSON.stringify(said.filter(({ role }) => role === "tool").map(textOf)) };
    }
    const text = lastUserText(request);
    const calls = JSON.parse(text.slice(text.indexOf("[["))) as [string, unknown][];
    return { call: calls.map(([tool, args]) => ({ tool, args })) };
  },
  undefined,
  afterAll,
);
const daemon = await startDaemonProcess(temporaryHome({}, afterAll), providerEnvironment(model.url), afterAll);

async function projectOf(conversation: string): Promise<string> {
  const folder = join(realpathSync(temporaryFolder()), "project");
  mkdirSync(folder);
  await daemon.json("PATCH", `/api/conversations/${conversation}`, { folder });
  return folder;
}

const send = async (conversation: string, calls: unknown): Promise<string> =>
  (await daemon.json<{ id: string }>("POST", "/api/messages", { text: JSON.stringify(calls), conversation })).id;
const answers = async (id: string): Promise<string[]> => JSON.parse((await finishedMessage(daemon, id)).reply ?? "") as string[];

test("edits of one file that a model asks for in one answer are all made, in their order", async () => {
  const folder = await projectOf("edits");
  writeFileSync(join(folder, "list.txt"), "one\ntwo\nthree\n");
  const edit = (path: string, old: string, text: string) => [
    "file_ops",
    { operation: "edit", path, edits: [{ old, new: text }] },
  ];
  const calls = [
    edit("list.txt", "one", "1"),
    edit("list.txt", "three", "3"),
    edit("./list.txt", "1\ntwo", "both"),
    ["file_ops", { operation: "write", path: "new.txt", content: "first\n" }],
    edit("new.txt", "first", "second"),
    ["file_ops", { operation: "read", path: "new.txt" }],
  ];
  const told = await answers(await send("edits", calls));
  expect(readFileSync(join(folder, "list.txt"), "utf8"), told.join("\n")).toBe("both\n3\n");
  expect(told.at(-1)).toContain("1\tsecond");
});

test("a change that a person is asked about keeps no other call waiting", async () => {
  const folder = await projectOf("asked");
  const outside = join(realpathSync(temporaryFolder()), "outside.txt");
  const write = (path: string) => ["file_ops", { operation: "write", path, content: "x\n" }];
  const id = await send("asked", [write(outside), write("inside.txt"), write(`${outside}.2`)]);
  const questions = await asked(daemon, 2);
  expect(readFileSync(join(folder, "inside.txt"), "utf8")).toBe("x\n");
  for (const question of questions) expect((await decide(daemon, question.id, { decision: "deny" })).status).toBe(200);
  expect((await answers(id))[1]).toContain("Wrote inside.txt");
});
