import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startInBackground } from "../../src/cli/daemon.ts";
import { createShell } from "../../src/cli/output.ts";
import { messageOf } from "../../src/lib/errors.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";

test("a start that takes too long says so and keeps its command no longer", async () => {
  const hold = join(temporaryFolder(), "hold.cjs");
  writeFileSync(hold, "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);\n");
  const env = { ...process.env, IO_HOME: temporaryHome(), IO_PORT: "0" };
  const started = startInBackground(createShell(env), { env: { ...env, NODE_OPTIONS: `--require ${hold}` }, readyMs: 300 });
  const told = messageOf(await started.catch((error: unknown) => error));
  const [, pid] = /\(pid ([0-9]+)\) does not serve after 0\.3 s/.exec(told) ?? [];
  try {
    expect(pid, told).toBeDefined();
    // What is listed here keeps a process from ending by itself.
    expect(process.getActiveResourcesInfo()).not.toContain("ProcessWrap");
  } finally {
    if (pid) process.kill(Number(pid), "SIGKILL");
  }
});
