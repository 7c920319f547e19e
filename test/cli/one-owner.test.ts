import { join } from "node:path";
import { expect, test } from "vitest";
import type { DoctorReport } from "../../src/protocol/doctor.ts";
import type { UsageSummary } from "../../src/protocol/usage.ts";
import { providerEnvironment, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { isAfterTool, scriptedModel } from "../support/model.ts";
import { projectOf } from "../support/project.ts";

const COMMANDS = [
  ...["status", "usage", "digest", "doctor", "doctor --fix", "undo --yes", "diff", "backup ../one.tar", "clean --yes"],
  ...["conversation list", "conversation show main", "task list", "squad list", "wiki list", "skill list", "background list"],
  ...["approval list", "approval rules", "budget show", "schedule list", "token list", "watch list", "rules", "mcp list"],
  ...["telegram status", "worker list", "swarm list", "config list"],
];

test.runIf(process.platform === "linux")("beside a daemon no command opens io.db", { timeout: 240_000 }, async () => {
  const home = temporaryHome();
  const model = await scriptedModel((request) =>
    isAfterTool(request) ? { say: "OK" } : { call: [{ tool: "report", args: { word: "ready" } }] },
  );
  const provider = providerEnvironment(model.url);
  const daemon = await startDaemonProcess(home, provider);
  const cwd = projectOf({ "README.md": "# One\n" });
  // For the commands alone, another device lies over each file of the database.
  const masks = ["io.db", "io.db-wal", "io.db-shm"].flatMap((name) => ["--ro-bind", "/dev/null", join(home, name)]);
  const run = (argv: readonly string[]) => ["/usr/bin/bwrap", "--dev-bind", "/", "/", ...masks, "--", ...argv];
  const io = (line: string) => runIo(line.split(" "), home, provider, "", { run, cwd });
  const setup = `setup --engine provider --base-url ${model.url} --api-key a-key-of-somebody --model scripted`;
  for (const line of [...COMMANDS, setup]) {
    const { stdout, stderr } = await io(line);
    expect(stdout + stderr, line).not.toMatch(/io\.db|not a database|unable to open|disk I\/O/i);
  }
  const report = JSON.parse((await io("doctor --json")).stdout) as DoctorReport;
  expect(report.items).toContainEqual({ check: "database", state: "ok", found: "whole" });
  const { items } = await daemon.json<UsageSummary>("GET", "/api/usage?by=agent");
  expect(Object.fromEntries(items.map(({ name, calls }) => [name, calls > 0]))).toMatchObject({ doctor: true, setup: true });
});
