import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { isAlive } from "../../src/lib/alive.ts";
import { watchLeftovers } from "../../src/process/leftover-processes.ts";
import { until } from "../support/until.ts";

/** A process in its own group that runs until it is killed. */
async function started(env: NodeJS.ProcessEnv): Promise<ChildProcess & { pid: number }> {
  const child = spawn("sleep", ["60"], { detached: true, stdio: "ignore", env: { PATH: process.env.PATH, ...env } });
  await once(child, "spawn");
  return child as ChildProcess & { pid: number };
}

test("processes left by a call are killed, and only new processes are examined", async () => {
  const mark = `call-${process.pid}`;
  const earlier = await started({ IO_CALL: mark });
  const watch = await watchLeftovers(`IO_CALL=${mark}`);
  const [own, other] = await Promise.all([started({ IO_CALL: mark }), started({ IO_CALL: "another" })]);
  try {
    await watch.end();
    await until("the end of the leftover", () => !isAlive(own.pid));
    expect([earlier, other].map(({ pid }) => isAlive(pid))).toEqual([true, true]);
  } finally {
    for (const child of [earlier, own, other]) child.kill("SIGKILL");
  }
});
