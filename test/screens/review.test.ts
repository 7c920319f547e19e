import { expect, test } from "vitest";
import type { Act, ChatRequest } from "../../src/engine/rehearsal/wire.ts";
import type { PageReview } from "../../src/protocol/page-review.ts";
import { openChat } from "../support/chat.ts";
import { until } from "../support/until.ts";

/** Writes the page it is told to write. */
const writes = (said: string, request: ChatRequest): Act =>
  request.messages.at(-1)?.role === "tool"
    ? { say: "Written." }
    : { call: [{ tool: "wiki_write", args: JSON.parse(/write (\{.*\})/s.exec(said)![1]!) as unknown }] };

test("in the chat each page that agents wrote is kept, changed in one's editor or reverted by one key", {
  timeout: 90_000,
}, async () => {
  const { terminal, daemon } = await openChat(writes, {
    config: { mode: "full" },
    env: { EDITOR: "sed -i s/Plum/Cherry/" },
  });
  const write = (path: string, content: string) =>
    daemon.ask({ text: `write ${JSON.stringify({ path, content })}`, conversation: "desk" });
  const contentOf = async (path: string) => (await daemon.json<{ content?: string }>("GET", `/api/wiki/pages/${path}`)).content;
  await terminal.enter("/review");
  await terminal.sees("nobody changed anything");
  const mine = "# Tea\r\n\r\nOolong.  \n\n";
  await daemon.json("PUT", "/api/wiki/pages/general/tea", { content: mine });
  await write("general/tea", "# Tea\n\nEarl Grey.\n");
  await write("general/cake", "# Cake\n\nPlum.\n");
  await write("general/milk", "# Milk\n\nOat.\n");

  await terminal.enter("/review");
  await terminal.sees("k keeps, c changes, r reverts; s skips, q ends · 2 more");
  await terminal.press("k");
  await terminal.sees("Kept general/milk.md.");
  await terminal.sees("q ends · 1 more");
  await terminal.press("c");
  await terminal.sees("Changed general/cake.md.");
  expect(await contentOf("general/cake")).toBe("# Cake\n\nCherry.\n");
  await terminal.press("r");
  await terminal.sees("Reverted general/tea.md.");
  expect(await contentOf("general/tea")).toBe(mine);
  expect((await daemon.json<{ items: PageReview[] }>("GET", "/api/wiki/review")).items).toEqual([]);

  // Afterwards, the keys type letters again.
  await terminal.type("kcr");
  await until("the letters", async () => /› kcr/.test(await terminal.screen()));
});
