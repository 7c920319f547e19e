import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { callText, journalOf, obedient } from "../support/orchestrator.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

const TRIES = 6;

test("a kill in the middle of an edit leaves the old file or the new one, and the model is told that nobody knows which", {
  timeout: 300_000,
}, async () => {
  const home = temporaryHome({}, atTheEnd);
  const work = temporaryFolder(atTheEnd);
  const model = await scriptedModel(obedient, {}, atTheEnd);
  const path = join(work, "big.txt");
  const old = `${"a line of a large file\n".repeat(200_000)}the end\n`;
  const fresh = old.replace("the end", "another end");
  let unknown = 0;
  for (let round = 1; round <= TRIES && unknown === 0; round += 1) {
    for (const name of readdirSync(work)) rmSync(join(work, name));
    writeFileSync(path, old);
    const daemon = await startDaemonProcess(home, providerEnvironment(model.url), atTheEnd);
    const text = callText("file_ops", { operation: "edit", path, edits: [{ old: "the end", new: "another end" }] });
    const { id } = await daemon.json<Message>("POST", "/api/messages", { text, conversation: `round-${round}` });
    const deadline = performance.now() + 60_000;
    // The new text is first written to a file beside the old one.
    while (readdirSync(work).length === 1 && performance.now() < deadline && !isFresh(path, fresh))
      await new Promise((next) => setImmediate(next));
    await daemon.kill("SIGKILL");
    const left = readFileSync(path, "utf8");
    expect(left === old || left === fresh).toBe(true);

    const again = await startDaemonProcess(home, providerEnvironment(model.url), atTheEnd);
    const message = await until("the message to be answered", async () => {
      const found = await again.json<Message>("GET", `/api/messages/${id}`);
      return found.status === "done" ? found : undefined;
    });
    const [call] = journalOf(home, id) as { tool: string; state: string }[];
    expect(call).toMatchObject({ tool: "file_ops", state: expect.stringMatching(/^(?:unknown|done)$/) });
    if (call?.state === "done") expect(readFileSync(path, "utf8")).toBe(fresh);
    else {
      unknown += 1;
      expect(message.reply).toContain("whether it took effect is unknown");
      // The edit is not repeated without the model's knowledge.
      expect(readFileSync(path, "utf8")).toBe(left);
    }
    await again.kill("SIGTERM");
  }
  expect(unknown).toBeGreaterThan(0);
});

/** Whether the edit finished before the kill. */
function isFresh(path: string, fresh: string): boolean {
  return statSync(path).size === Buffer.byteLength(fresh);
}
