import { expect, onTestFinished, test } from "vitest";
import { findRuntime } from "../../src/engine/runtime/path.ts";
import { createStarter, endRuntime } from "../../src/engine/runtime/process.ts";
import { temporaryFolder } from "../support/home.ts";

test.each(["killed", "asked to end"])(
  "a runtime that was %s is not started again by whoever still holds its client",
  async (how) => {
    const path = await findRuntime();
    const pids: number[] = [];
    const starter = createStarter({
      ...{ folder: temporaryFolder(), path, env: { PATH: process.env.PATH }, client: { useLoggedInUser: false } },
      onPid: (pid) => pids.push(pid),
    });
    const life = await starter.start();
    onTestFinished(() => life.client.forceStop());
    const died = new Promise<void>((resolve) => life.onDeath(resolve));
    if (how === "killed") process.kill(life.pid, "SIGKILL");
    else await endRuntime(life);
    await died;
    await life.client.forceStop();
    await expect(life.client.createSession({})).rejects.toThrow("connection was closed");
    await expect(life.client.resumeSession("gone", {})).rejects.toThrow("connection was closed");
    expect(pids).toEqual([life.pid]);

    // The starter itself can start again: only the old process stays dead.
    const next = await starter.start();
    expect(next.pid).not.toBe(life.pid);
    await endRuntime(next);
  },
);
