import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import { startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { ended, project } from "../support/squads.ts";
import { until } from "../support/until.ts";

test("a newcomer without any model can form a squad, delegate to it and hear of the result", async () => {
  const daemon = await startDaemonProcess(temporaryHome(), { IO_ENGINE: "rehearsal" });
  const folder = project();
  const name = basename(folder);
  const formed = await daemon.ask({ text: `Form a squad for ${folder}` });
  expect(formed.reply).toContain("Hannibal, Lead Architect");
  const asked = await daemon.ask({ text: `Ask the ${name} squad to run \`touch rehearsed\`` });
  expect(asked.route).toMatchObject({ answered: "delegated", tasks: [expect.stringMatching(/^t_/)] });
  const task = await ended(daemon, asked.route.tasks[0]!);
  expect(task).toMatchObject({ status: "done", evidence: { filesChanged: ["rehearsed"] } });
  expect(existsSync(join(folder, "rehearsed"))).toBe(true);
  const told = await until("the result to be told", async () => {
    const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages");
    return items.find(({ source, status }) => source.channel === "background" && status === "done");
  });
  expect(told.reply).toContain(`about ${task.id}`);
  await daemon.kill("SIGTERM");
});
