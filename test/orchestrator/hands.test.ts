import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { unmarked } from "../support/data.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { callText, journalOf, modelCalls, obedient } from "../support/orchestrator.ts";
import { until } from "../support/until.ts";

const home = temporaryHome({ mode: "full" }, afterAll);
const work = temporaryFolder(afterAll);
const model = await scriptedModel(obedient, {}, afterAll);
const daemon = await startDaemonProcess(home, providerEnvironment(model.url), afterAll);
const call = (args: unknown) => modelCalls(daemon, model, "file_ops", args);

test("a model searches and finds, its calls stand in the journal as reads, and one that is hostile holds up nobody", async () => {
  writeFileSync(join(work, "a.py"), `${"x = 1\n".repeat(4_000)}def needle(): pass\n`);
  writeFileSync(join(work, "evil.txt"), `${"a".repeat(60)}!\n`);
  const found = await call({ operation: "search", query: "def \\w+\\(", regex: true, path: work });
  expect(unmarked(found.read)).toBe("a.py\n4001:def needle(): pass\n[1 line in 1 file.]");
  expect(unmarked((await call({ operation: "find", glob: "*.py", path: work })).read)).toBe("a.py\n[1 found.]");
  expect(journalOf(home, found.message.id)).toEqual([{ tool: "file_ops", state: "done" }]);
  const listed = await daemon.json<{ items: { kind: string }[] }>("GET", `/api/messages/${found.message.id}/calls`);
  expect(listed.items.map(({ kind }) => kind)).toEqual(["read"]);

  const text = callText("file_ops", { operation: "search", query: "^(a+)+$", regex: true, path: work });
  const { id } = await daemon.json<Message>("POST", "/api/messages", { text, conversation: "hostile" });
  await until("the search to have begun", async () => journalOf(home, id).length === 1);
  for (let asked = 0; asked < 20; asked += 1) expect((await daemon.fetch("/api/status")).status).toBe(200);
  await daemon.json("POST", `/api/messages/${id}/cancel`);
  await until(
    "the turn to be over",
    async () => (await daemon.json<Message>("GET", `/api/messages/${id}`)).status === "cancelled",
  );
});

test("a model edits, moves and deletes: each is an effect in the journal, and its answer the difference", async () => {
  writeFileSync(join(work, "crlf.txt"), "\uFEFFone\r\ntwo\r\n");
  const edits = [
    { old: "one\n", new: "1\n" },
    { old: "two", new: "2\n3" },
  ];
  const edited = await call({ operation: "edit", path: join(work, "crlf.txt"), edits });
  expect(unmarked(edited.read)).toContain("@@ -1,2 +1,3 @@\n-\uFEFFone\r\n-two\r\n+\uFEFF1\r\n+2\r\n+3\r");
  expect(readFileSync(join(work, "crlf.txt"), "utf8")).toBe("\uFEFF1\r\n2\r\n3\r\n");
  const refused = await call({ operation: "edit", path: join(work, "crlf.txt"), edits });
  expect(refused.read).toContain("was not edited. edits.0: old: is not in the file.");
  const moved = await call({ operation: "move", path: join(work, "crlf.txt"), to: join(work, "new/name.txt") });
  const deleted = await call({ operation: "delete", path: join(work, "new") });
  expect(deleted.read).toContain("Deleted the folder");
  expect(existsSync(join(work, "new"))).toBe(false);
  const calls = async ({ message }: { message: Message }) =>
    (await daemon.json<{ items: { kind: string; state: string }[] }>("GET", `/api/messages/${message.id}/calls`)).items;
  for (const done of [edited, moved, deleted]) expect(await calls(done)).toMatchObject([{ kind: "effect", state: "done" }]);
  expect(await calls(refused)).toMatchObject([{ kind: "effect", state: "failed" }]);
});
