import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Status } from "../../src/protocol/api.ts";
import { lockHolder } from "../../src/store/lock.ts";
import { endDaemonOf, runIo, startIo } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { until } from "../support/until.ts";

/** Keeps a daemon from serving until a file is there. */
const HOLD = `
const { existsSync } = require("node:fs");
const { Server } = require("node:net");
const { listen } = Server.prototype;
if (process.argv.includes("--daemon"))
  Server.prototype.listen = function (...args) {
    const again = setInterval(() => {
      if (!existsSync(process.env.IO_TEST_OPEN)) return;
      clearInterval(again);
      listen.apply(this, args);
    }, 20);
    return this;
  };
`;

test("commands wait for a daemon that is starting, say so after a second, and then do their work", async () => {
  const folder = temporaryFolder();
  const home = temporaryHome();
  onTestFinished(() => endDaemonOf(home));
  const hold = join(folder, "hold.cjs");
  const open = join(folder, "open");
  writeFileSync(hold, HOLD);
  const env = { IO_ENGINE: "rehearsal", NODE_OPTIONS: `--require ${hold}`, IO_TEST_OPEN: open };
  const start = startIo(["start"], home, env);
  await until("the daemon to hold its folder", () => lockHolder(join(home, "daemon.lock")) !== undefined);

  const status = startIo(["status", "--json"], home);
  const send = startIo(["send", "Hello", "--no-wait"], home);
  const again = startIo(["start"], home, env);
  for (const { said } of [status, send, again])
    await until("a word", () => said.stderr === "Waiting for IO, which is starting or ending …\n");
  writeFileSync(open, "");
  expect(await status.ended).toBe(0);
  expect((JSON.parse(status.said.stdout) as Status).engine.kind).toBe("rehearsal");
  expect(await send.ended).toBe(0);
  expect(send.said.stdout).toMatch(/^m_\w+\n$/);
  expect(await start.ended).toBe(0);
  expect(await again.ended).toBe(1);
  expect(again.said.stderr).toContain("A daemon already runs on ");
  expect(await runIo(["stop"], home)).toMatchObject({ code: 0, stderr: "" });
  expect(await runIo(["status"], home)).toMatchObject({ code: 4, stderr: expect.stringContaining("No daemon runs") });
}, 60_000);
