import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ensureHome, type Paths, pathsOf } from "../../src/home/paths.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { cleanEnvironment } from "../../src/process/environment.ts";
import { findPrograms } from "../../src/process/programs.ts";
import { createSandbox, probeSandbox, type SandboxStatus } from "../../src/process/sandbox.ts";
import { createPathGuard } from "../../src/tools/guard.ts";
import { createPolicy } from "../../src/tools/policy.ts";
import { shell } from "../../src/tools/shell.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { unmarked } from "../support/data.ts";
import { ensureProgram } from "../support/program.ts";
import { soon } from "../support/soon.ts";

let root: string;
let cwd: string;
let paths: Paths;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "io-shell-")));
  cwd = join(root, "project");
  mkdirSync(cwd);
  paths = pathsOf({ IO_HOME: join(root, "home"), HOME: root });
  ensureHome(paths);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const open: SandboxStatus = { kind: "open", detail: "for this test" };
await ensureProgram("bwrap", "bubblewrap");
const found = await probeSandbox(findPrograms({ env: process.env, closed: [] }).find("bwrap"));
const kinds: [string, SandboxStatus][] = [
  ["open", open],
  ["hidden", found],
];
test("bubblewrap can hide something here, so that the cases below are about it", () => {
  expect(found).toMatchObject({ kind: "hidden" });
});

function shellWith(status: SandboxStatus, env: NodeJS.ProcessEnv = process.env, more: { longestMs?: number } = {}): Tool {
  mkdirSync(join(root, "package", "dist"), { recursive: true });
  const guard = createPathGuard({ paths, packageRoot: join(root, "package"), selfEdit: () => false });
  const sandbox = createSandbox({ home: paths.home, guard, probe: async () => status });
  return shell({ sandbox, redactor: createRedactor(["known-secret-value"]), env, ...more });
}
const run = (one: Tool, args: Record<string, unknown>, signal = new AbortController().signal) =>
  one.run(one.schema.parse(args), { cwd, actor: "orchestrator", owner: "m1", signal });
const alive = (pid: number) => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
};
const commandOf = (pid: number) => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
};
// Process ids inside a sandbox differ from the host's, so processes are identified by their command line.
const hostPids = (mark: string) =>
  readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid && commandOf(pid).includes(mark) && alive(pid));

test.each(kinds)("a command runs in its folder and its exit code is always told (%s)", async (_name, status) => {
  const one = shellWith(status);
  expect(unmarked(await run(one, { command: "pwd; echo oops >&2; exit 3" }))).toBe(`exit code: 3\n${cwd}\noops`);
  expect(await run(one, { command: "true" })).toBe("exit code: 0\nIt printed nothing.");
  mkdirSync(join(cwd, "sub"));
  expect(unmarked(await run(one, { command: "pwd", working_dir: "sub" }))).toBe(`exit code: 0\n${join(cwd, "sub")}`);
  expect(await run(one, { command: "echo \"$0 $1 it's\" 'a  b'" })).toContain("it's a  b");
  await expect(run(one, { command: "pwd", working_dir: "nowhere" })).rejects.toThrow("is not a folder");
});

test("long output keeps its head and its tail and stays under the limit", async () => {
  const text = await run(shellWith(open), { command: "echo first; seq 1 200000; echo last; exit 7" });
  expect(text).toMatch(/^exit code: 7\n--- data [0-9a-f]{12}\nfirst\n/);
  expect(text).toMatch(/characters left out[\s\S]*last\n--- end [0-9a-f]{12}$/);
  expect(text.length).toBeLessThan(8_200);
});

test.each(kinds)(
  "cancelling ends the command and every child of it within two seconds, also one that left its group (%s)",
  async (_name, status) => {
    const stop = new AbortController();
    const mark = `io-test-${process.pid}-${Date.now()}`;
    const script = join(cwd, "linger.sh");
    writeFileSync(script, "sleep 300 & sleep 300; true");
    const command = `bash ${script} ${mark} & setsid bash ${script} ${mark} & (setsid nohup bash ${script} ${mark} >/dev/null 2>&1 &) ; touch ready; wait`;
    const running = run(shellWith(status), { command, timeout_secs: 100 }, stop.signal).catch((error: Error) => error.message);
    await expect
      .poll(() => existsSync(join(cwd, "ready")) && hostPids(`${script} ${mark}`).length >= 3, { timeout: 10_000 })
      .toBe(true);
    const began = performance.now();
    stop.abort();
    expect(await running).toContain("was stopped, with everything it had started");
    await expect.poll(() => hostPids(mark), { timeout: 2_000 }).toEqual([]);
    expect(performance.now() - began).toBeLessThan(soon(2_000));
  },
);

test.each(kinds)("what a command leaves in the background does not outlive the call (%s)", async (_name, status) => {
  const mark = `io-test-${process.pid}-${Date.now()}-bg`;
  const script = join(cwd, "linger.sh");
  writeFileSync(script, "sleep 300; true");
  const began = performance.now();
  expect(
    await run(shellWith(status), { command: `bash ${script} ${mark} & setsid bash ${script} ${mark} & sleep 0.1; echo started` }),
  ).toContain("started");
  expect(performance.now() - began).toBeLessThan(soon(5_000));
  await expect.poll(() => hostPids(mark), { timeout: 2_000 }).toEqual([]);
});

test("a command over its time is stopped, and what it had printed is told", async () => {
  await expect(run(shellWith(open), { command: "echo begun; sleep 60", timeout_secs: 1 })).rejects.toThrow(
    /did not end within 1 s and was stopped[\s\S]*begun/,
  );
});

test("a command that wants more time than any call may take is stopped before the call is given up, with what it printed", async () => {
  const tool = shellWith(open, process.env, { longestMs: 1_000 });
  await expect(run(tool, { command: "echo begun; sleep 60", timeout_secs: 3_600 })).rejects.toThrow(
    /did not end within 1 s and was stopped.* No call takes longer: let it run in the background[\s\S]*begun/,
  );
});

test("no secret is in the command's environment", async () => {
  const env = {
    PATH: process.env.PATH,
    HOME: root,
    IO_TOKEN: "stolen1",
    GH_TOKEN: "stolen2",
    GITHUB_TOKEN: "stolen3",
    COPILOT_MODEL: "stolen4",
    COPILOT_PROVIDER_API_KEY: "stolen5",
    TELEGRAM_BOT_TOKEN: "stolen6",
    MY_SECRET: "stolen7",
    OPENAI_API_KEY: "stolen8",
    npm_config__auth: "stolen9",
    DB_PASSWORD: "stolen10",
    INNOCENT: "known-secret-value",
    IO_HOME: "/x",
    EDITOR: "vi",
  };
  const text = await run(shellWith(open, env), { command: "env" });
  expect(text).not.toMatch(/stolen\d|known-secret-value/);
  expect(text).toContain("EDITOR=vi");
  expect(text).toContain("IO_HOME=/x");
  expect(Object.keys(cleanEnvironment({ SSH_AUTH_SOCK: "/s", AUTHOR: "me" }, createRedactor()))).toContain("SSH_AUTH_SOCK");
});

test("the policy stops a ruinous command and a step into the session files, and lets the rest pass", () => {
  const guard = createPathGuard({ paths, packageRoot: join(root, "package"), selfEdit: () => false });
  const policy = createPolicy({ guard, keep: [paths.home] });
  const one = shellWith(open);
  const judge = (args: Record<string, unknown>) => policy(one, args, { cwd, actor: "orchestrator" });
  expect(judge({ command: "rm -rf ~" })).toContain("it would delete");
  expect(judge({ command: "rm -rf ../home" })).toContain(paths.home);
  expect(judge({ command: "rm -rf *", working_dir: "../home" })).toContain(paths.home);
  expect(judge({ command: "ls", working_dir: paths.sessions })).toContain("IO's own secrets");
  expect(judge({ command: "rm -rf dist && ls" })).toBeUndefined();
});

test("where nothing can be hidden the command runs all the same, and the status says so", async () => {
  const guard = createPathGuard({ paths, packageRoot: root, selfEdit: () => false });
  const sandbox = createSandbox({ home: paths.home, guard, probe: async () => open });
  expect(await sandbox.wrap(["/bin/sh", "-c", "true"], cwd)).toEqual(["/bin/sh", "-c", "true"]);
  expect(await sandbox.status()).toEqual(open);
});

test("under bubblewrap a command sees everything but IO's secrets, and cannot change IO's code", async () => {
  for (const file of [paths.token, paths.config, paths.database, `${paths.database}-wal`, join(paths.sessions, "s")]) {
    writeFileSync(file, "hush-hush");
  }
  mkdirSync(join(paths.wiki, "pages"));
  writeFileSync(join(paths.wiki, "pages", "page.md"), "open");
  writeFileSync(paths.daemon, "{}");
  const one = shellWith(found);
  writeFileSync(join(root, "package", "dist", "app.js"), "code");
  const seen = await run(one, {
    command: `cat ${paths.home}/* ${paths.home}/*/* ${paths.home}/*/*/* ${paths.home}/.*; ls -A ${paths.home}; umount ${paths.home}`,
  });
  expect(seen).not.toContain("hush-hush");
  expect(seen).toContain("open");
  expect(seen).not.toMatch(/^(token|config\.json|io\.db)/m);
  const written = await run(one, {
    command: `echo 1 > ${root}/package/dist/app.js; echo 2 > ${paths.daemon}; echo 3 > ${paths.wiki}/pages/page.md; echo 4 > own.txt; echo 5 > ${paths.skills}/mine; tr '\\0' '\\n' < /proc/${process.pid}/environ`,
  });
  expect(readFileSync(join(root, "package", "dist", "app.js"), "utf8")).toBe("code");
  expect(readFileSync(paths.daemon, "utf8")).toBe("{}");
  expect(readFileSync(join(paths.wiki, "pages", "page.md"), "utf8")).toBe("3\n");
  expect(readFileSync(join(cwd, "own.txt"), "utf8")).toBe("4\n");
  expect(existsSync(join(paths.skills, "mine"))).toBe(false);
  expect(written).not.toContain("PATH=");
  expect(readFileSync(paths.token, "utf8")).toBe("hush-hush");
});

test("commands are told that nobody watches them, unless whoever started IO says otherwise", async () => {
  const { CI: _, ...env } = process.env;
  expect(await run(shellWith(open, env), { command: 'echo "CI is $CI"' })).toContain("CI is true");
  expect(await run(shellWith(found, env), { command: 'echo "CI is $CI"' })).toContain("CI is true");
  expect(await run(shellWith(open, { ...env, CI: "false" }), { command: 'echo "CI is $CI"' })).toContain("CI is false");
});
