import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Model } from "../../../src/engine/rehearsal/wire.ts";
import { isAfterTool } from "../../support/model.ts";
import { project } from "../../support/squads.ts";
import { telegraphed } from "../../support/telegram/daemon.ts";
import { until } from "../../support/until.ts";

test("what a message changed is shown and undone from a chat, and done again", async () => {
  const folder = project({ "a.txt": "one\n" });
  const model: Model = (request) =>
    isAfterTool(request)
      ? { say: "It is written." }
      : { call: [{ tool: "file_ops", args: { operation: "write", path: "new.txt", content: "by the chat\n" } }] };
  const { owner, daemon } = await telegraphed(model);
  await daemon.json("PATCH", "/api/conversations/main", { folder });
  owner.send("/undo");
  await owner.sees(/No change of a file is known in this conversation/);
  owner.send("write it");
  await owner.sees(/It is written/);
  const made = join(folder, "new.txt");
  expect(readFileSync(made, "utf8")).toBe("by the chat\n");
  owner.send("/diff");
  await owner.sees(/added +new\.txt[\s\S]*\+by the chat/);
  owner.send("/undo");
  await owner.sees(/^Undone: m_/);
  expect(existsSync(made)).toBe(false);
  owner.send("/undo");
  await owner.sees(/^Done again: m_/);
  await until("the file to be there again", () => existsSync(made));
});
