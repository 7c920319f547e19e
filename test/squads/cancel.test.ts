import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Task } from "../../src/protocol/squads.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { soon } from "../support/soon.ts";
import { characterOf, daemonOn, delegate, ended, project, squadWith, stepOf } from "../support/squads.ts";
import { until } from "../support/until.ts";

const sleepers = (mark: string) => {
  const all = execFileSync("ps", ["-eo", "args"], { encoding: "utf8" });
  return all.split("\n").filter((line) => line.includes(mark) && /^sleep|\/sleep/.test(line)).length;
};

test("cancelling a task that sleeps in a shell with children ends all of it within 2 s; later tasks go on", async () => {
  const seconds = `6${String(process.pid).padStart(7, "0")}`;
  const model = await scriptedModel((request) => {
    if (!characterOf(request)) return { say: "noted" };
    if (lastUserText(request).includes("after")) return { say: "still here" };
    return stepOf(request) === 0
      ? {
          call: [
            {
              tool: "shell",
              args: {
                command: `sleep ${seconds} & sleep ${seconds} & (sleep ${seconds}; true) & touch begun; wait`,
                timeout_secs: 3600,
              },
            },
          ],
        }
      : { say: "slept well" };
  });
  const daemon = await daemonOn(model);
  const folder = project();
  await squadWith(daemon, folder, "one", ["Engineer"]);
  const follower = await daemon.follow({ conversation: "c" });
  const { id } = await delegate(daemon, "one", { task: "sleep", conversation: "c" });
  const later = await delegate(daemon, "one", { task: "after", conversation: "c" });
  await until("the sleepers", () => existsSync(join(folder, "begun")) && sleepers(seconds) === 3);

  const asked = performance.now();
  const cancelled = await daemon.json<Task>("POST", `/api/tasks/${id}/cancel`);
  await until("every process to be gone", () => sleepers(seconds) === 0);
  expect(performance.now() - asked).toBeLessThan(soon(2_000));
  expect(cancelled).toMatchObject({ id, status: "cancelled", error: { code: "cancelled" } });
  expect(await ended(daemon, later.id)).toMatchObject({ status: "done", result: "still here" });
  expect(follower.of("task.finished").map(({ body }) => [body.id, body.status])).toEqual([
    [id, "cancelled"],
    [later.id, "done"],
  ]);
  expect((await daemon.fetch(`/api/tasks/${id}/cancel`, { method: "POST" })).status).toBe(409);
  expect((await daemon.fetch("/api/tasks/t_nobody/cancel", { method: "POST" })).status).toBe(404);
});

test("a stop of everything ends running and waiting tasks, counts them, and the daemon stays up", async () => {
  const model = await scriptedModel((request) => (lastUserText(request).includes("next") ? { say: "fine" } : { hang: true }));
  const home = temporaryHome();
  const daemon = await daemonOn(model, home);
  await squadWith(daemon, project(), "one", ["Engineer", "Tester"]);
  const tasks = [
    await delegate(daemon, "one", { task: "first", agent: "Hannibal" }),
    await delegate(daemon, "one", { task: "second", agent: "Hannibal" }),
    await delegate(daemon, "one", { task: "third", agent: "Face" }),
  ];
  await until("two to run", () => model.requests.length === 2);
  expect(await daemon.json("GET", "/api/status")).toMatchObject({
    counts: { squads: 1, tasks: 3, tasksRunning: 2, tasksQueued: 1 },
  });
  expect(await daemon.json("POST", "/api/stop")).toMatchObject({ tasks: 3 });
  for (const { id } of tasks) expect((await ended(daemon, id)).status).toBe("cancelled");
  expect(await daemon.json("GET", "/api/messages")).toEqual({ items: [] });
  expect((await ended(daemon, (await delegate(daemon, "one", { task: "next", agent: "Face" })).id)).status).toBe("done");
  expect(readFileSync(join(home, "daemon.json"), "utf8")).toContain(String(daemon.pid));
});
