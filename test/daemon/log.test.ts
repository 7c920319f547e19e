import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { until } from "../support/until.ts";

const linesOf = (home: string) =>
  readFileSync(join(home, "logs", "io.log"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

test("a message and a task that fail leave a line in the log, without what was said, and a foreground daemon shows it", async () => {
  const model = await scriptedModel(() => ({ status: 401 }));
  const home = temporaryHome();
  const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
  const { id } = await daemon.ask({ text: "my private words", conversation: "quiet" });
  await daemon.json("POST", "/api/squads", { name: "painters", slug: "painters", projectPath: temporaryFolder() });
  await daemon.json("POST", "/api/squads/painters/agents", { roleTitle: "Painter", charter: "Paints." });
  await daemon.json("POST", "/api/squads/painters/tasks", { task: "paint my private door", conversation: "quiet" });
  const failed = await until("both lines", () => {
    const lines = linesOf(home).filter(({ message }) => message === "a message failed" || message === "a task failed");
    return lines.length >= 2 && lines;
  });
  expect(failed[0]).toMatchObject({
    level: "warn",
    message: "a message failed",
    id,
    conversation: "quiet",
    code: "unauthorized",
  });
  expect(failed).toContainEqual(
    expect.objectContaining({ level: "warn", message: "a task failed", squad: "painters", code: "unauthorized" }),
  );
  expect(readFileSync(join(home, "logs", "io.log"), "utf8")).not.toContain("my private");
  await until("the line on the screen", () => daemon.output().includes(`warn  a message failed {"id":"${id}"`));
  expect(daemon.output()).toMatch(/info {2}IO serves/);
});

test("what a killed daemon left is taken up again with a line in the log", async () => {
  const model = await scriptedModel(() => ({ stall: "I was" }));
  const home = temporaryHome();
  const first = await startDaemonProcess(home, providerEnvironment(model.url));
  const { id } = await first.json<{ id: string }>("POST", "/api/messages", { text: "hello" });
  await first.json("POST", "/api/squads", { name: "painters", slug: "painters", projectPath: temporaryFolder() });
  await first.json("POST", "/api/squads/painters/agents", { roleTitle: "Painter", charter: "Paints." });
  const task = await first.json<{ id: string }>("POST", "/api/squads/painters/tasks", { task: "paint" });
  await until("both to be under way", () => model.requests.length === 2);
  await first.kill("SIGKILL");
  model.play((request) => ({ say: lastUserText(request).includes("paint") ? "painted" : "I am back" }));
  await startDaemonProcess(home, providerEnvironment(model.url));
  const taken = linesOf(home).filter(({ message }) => /is taken up again$/.test(String(message)));
  expect(taken).toContainEqual(
    expect.objectContaining({ level: "warn", message: "a message was interrupted and is taken up again", id }),
  );
  expect(taken).toContainEqual(
    expect.objectContaining({ level: "warn", message: "a task was interrupted and is taken up again", id: task.id }),
  );
});
