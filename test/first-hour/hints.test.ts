import { mkdirSync, symlinkSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { exec } from "../../src/process/exec.ts";
import { cleanEnvironment, IO, runIo } from "../support/daemon.ts";
import { temporaryFolder } from "../support/home.ts";
import { openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

/** Types a command in a folder and runs, word for word, the command that its answer suggests. */
async function followHint(cwd: string, typed: string, env: NodeJS.ProcessEnv): Promise<string> {
  const place = temporaryFolder();
  const terminal = await openTerminal(place, ["sh", "-c", `cd '${cwd}'; ${typed}; echo "exit $?"; sleep 100`], env);
  await until("the answer", async () => /exit \d/.test(await terminal.screen()), 60_000);
  const shown = (await terminal.screen()).replace(/\n(?=\S)/g, " ");
  const hint = /Start one with "([^"]+)"/.exec(shown)?.[1] ?? "";
  const followed = await exec("sh", ["-c", hint], { cwd, env });
  expect([hint, followed.code, followed.stdout]).toEqual([hint, 0, expect.stringContaining("IO serves at")]);
  return hint;
}

test("a hint works as typed, whether IO was started by its file, through npx, or as a command", async () => {
  const home = temporaryFolder();
  const env = cleanEnvironment(home, {
    IO_ENGINE: "rehearsal",
    npm_config_cache: join(home, "cache"),
    npm_config_update_notifier: "false",
    // Otherwise npx rebuilds the checkout while other tests use it.
    npm_config_ignore_scripts: "true",
  });
  const stop = () => runIo(["stop"], home);
  onTestFinished(async () => void (await stop()));
  expect(await followHint(packageRoot, "node bin/io.js status", env)).toBe("node bin/io.js start");
  await stop();
  const elsewhere = temporaryFolder();
  expect(await followHint(elsewhere, `node '${IO}' status`, env)).toBe(`node ${IO} start`);
  await stop();
  expect(await followHint(packageRoot, "npx io status", env)).toBe("npx io start");
  await stop();
  const programs = join(elsewhere, "programs");
  mkdirSync(programs);
  symlinkSync(IO, join(programs, "io"));
  const linked = { ...env, PATH: [programs, process.env.PATH].join(delimiter) };
  expect(await followHint(elsewhere, "io status", linked)).toBe("io start");
});

test("what a script reads names the commands by their names, and says how they are typed there", async () => {
  const home = temporaryFolder();
  const { code, stderr } = await runIo(["status"], home);
  expect(code).toBe(4);
  expect(stderr).toContain('Start one with "io start".\n(Here, io is typed: node ');
});
