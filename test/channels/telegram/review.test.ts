import { expect, test } from "vitest";
import type { PageReview } from "../../../src/protocol/page-review.ts";
import { callText, obedient } from "../../support/orchestrator.ts";
import { telegraphed } from "../../support/telegram/daemon.ts";
import { until } from "../../support/until.ts";

test("what agents wrote is reviewed in a chat: each page is kept, changed or reverted by one button, exactly and once", async () => {
  const { owner, daemon } = await telegraphed(obedient, { config: { mode: "full" } });
  const write = (path: string, content: string) =>
    daemon.ask({ text: callText("wiki_write", { path, content }), conversation: "desk" });
  const contentOf = async (path: string) => (await daemon.json<{ content?: string }>("GET", `/api/wiki/pages/${path}`)).content;
  const left = async () =>
    (await daemon.json<{ items: PageReview[] }>("GET", "/api/wiki/review")).items.map(({ path }) => path).sort();
  owner.send("/review");
  await owner.sees(/^Nobody changed anything since you last looked/);

  const mine = "# Tea\r\n\r\nOolong, at 95 °C.  \n\n";
  await daemon.json("PUT", "/api/wiki/pages/general/tea", { content: mine });
  await write("general/tea", "# Tea\n\nEarl Grey.\n");
  await write("general/cake", "# Cake\n\nPlum.\n");
  await write("general/milk", "# Milk\n\nOat.\n");
  owner.send("/review");
  const list = await owner.sees(/^Changed since you last looked/);
  expect(list.text).toMatch(/1\. general\/milk\.md, written by orchestrator, .* UTC\n {3}asked: call wiki_write/);
  expect(list.buttons.map((row) => row.map(({ text }) => text))).toEqual(
    [1, 2, 3].map((at) => [`✅ Keep ${at}`, `✏️ Change ${at}`, `↩️ Revert ${at}`]),
  );
  for (const { data } of list.buttons.flat()) expect(Buffer.byteLength(data)).toBeLessThanOrEqual(64);

  const keep = list.buttons[0]![0]!.data;
  const revert = list.buttons[2]![2]!.data;
  expect(await owner.answered(owner.pressData(list, keep))).toMatchObject({ text: "Kept general/milk.md." });
  await until("the list to shrink", () => list.buttons.length === 2);
  expect((await owner.answered(owner.pressData(list, keep))).text).toMatch(/^This was decided already/);
  expect(await owner.answered(owner.pressData(list, revert))).toMatchObject({ text: "Reverted general/tea.md." });
  expect(await contentOf("general/tea")).toBe(mine);
  await until("the list to shrink", () => list.buttons.length === 1);

  await owner.answered(owner.press(list, /Change 1/));
  const how = await owner.sees(/^general\/cake\.md now:/);
  expect(how.text).toMatch(/Plum\.[\s\S]*\/change general\/cake\.md$/);
  owner.send("/change general/cake.md");
  await owner.sees(/^Name the page on the first line/);
  owner.send("/change general/cake.md\n# Cake\n\nCherry.");
  await owner.sees(/^Changed general\/cake\.md/);
  expect(await contentOf("general/cake")).toBe("# Cake\n\nCherry.\n");
  await until("nothing to be left", () => list.buttons.length === 0 && /^Nobody changed anything/.test(list.text));
  expect(await left()).toEqual([]);

  // A button for a page that has changed since decides nothing: nobody has seen the new text.
  await write("general/milk", "# Milk\n\nSoy.\n");
  owner.send("/review");
  const again = await owner.sees(/1\. general\/milk\.md/);
  const old = again.buttons[0]![0]!.data;
  await write("general/milk", "# Milk\n\nNone.\n");
  expect((await owner.answered(owner.pressData(again, old))).text).toMatch(/changed again\. \/review shows/);
  expect(await left()).toEqual(["general/milk.md"]);
  const changes = await daemon.json<{ items: { channel: string }[] }>("GET", "/api/wiki/changes?by=person&path=general/cake.md");
  expect(changes.items).toMatchObject([{ channel: "telegram" }]);
});
