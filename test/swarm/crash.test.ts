import type { ChildProcess } from "node:child_process";
import { expect, test } from "vitest";
import { temporaryFolder } from "../support/home.ts";
import { isAfterTool, scriptedModel } from "../support/model.ts";
import { git, makeProject } from "../support/swarm/index.ts";
import { live, runOf } from "../support/swarm/lives.ts";

test("an engineer that is killed in the middle of its turn does not do its work twice", async () => {
  const home = temporaryFolder();
  const project = makeProject({
    "swarm.config.yaml": "pipeline:\n  - {phase: implement, parallel: true, agent: engineer}\n",
  });
  let child: ChildProcess | undefined;
  let killed = false;
  const model = await scriptedModel((request) => {
    if (!isAfterTool(request)) return { call: [{ tool: "shell", args: { command: "echo once >> log.txt" } }] };
    if (!killed) child?.kill("SIGKILL");
    killed = true;
    return { say: "Done.", delayMs: 300 };
  });
  const base = { home, project, modelUrl: model.url, issue: "Write a log" };
  const first = await live(base, (started) => {
    child = started;
  });
  expect(first.signal).toBe("SIGKILL");
  const { row } = runOf(home);
  const second = await live({ ...base, resume: row!.id });
  expect(JSON.parse(second.said)).toMatchObject({ status: "done", outcome: "approved" });
  expect(git(project, "show", `swarm/${row!.id}:log.txt`)).toBe("once");
}, 120_000);
