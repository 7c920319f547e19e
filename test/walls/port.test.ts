import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { exec } from "../../src/process/exec.ts";
import { createSandboxedProcesses } from "../../src/process/wall/sandboxed-processes.ts";
import { IO, providerEnvironment, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { modelCalls, obedient } from "../support/orchestrator.ts";
import { until } from "../support/until.ts";
import { asUser, attack, give, HEIGHTS, USERS } from "../support/wall.ts";

/** Starts a user's daemon at a sandbox level, with a model that does what it is told. */
async function open(height: (typeof HEIGHTS)[number], user: "root" | "ordinary", config: Record<string, unknown> = {}) {
  const model = await scriptedModel(obedient);
  const home = temporaryHome({ sandbox: height, ...config });
  give(home, user);
  const program =
    user === "ordinary" ? [join(packageRoot, "test", "support", "as-nobody.mjs"), IO, "--daemon"] : [IO, "--daemon"];
  const daemon = await startDaemonProcess(
    home,
    { ...providerEnvironment(model.url), PATH: "/usr/bin:/bin" },
    onTestFinished,
    program,
  );
  const shell = async (command: string) => (await modelCalls(daemon, model, "shell", { command })).read;
  return { daemon, shell, home };
}

const get = (port: string, then = "cat <&3") =>
  `exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'GET /api/health HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n' >&3; ${then}`;
const python = (port: string, before: string) =>
  `python3 -c '\nimport ctypes, socket\n${before}\ns = socket.create_connection(("127.0.0.1", ${port}))\ns.sendall(b"GET /api/health HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n")\nprint(s.recv(4000).decode())\n'`;
const portOf = (daemon: TestDaemon) => new URL(daemon.url).port;

describe.each(USERS)("%s", (user) => {
  test.each(HEIGHTS)("IO's own port does not serve a command, however it hides (%s)", { timeout: 120_000 }, async (height) => {
    const { daemon, shell } = await open(height, user);
    const port = portOf(daemon);
    const ways = [
      get(port),
      `bash -c '(exec setsid bash -c "sleep 0.05") & ${get(port).replaceAll("'", "'\\''")}'`,
      // PR_SET_DUMPABLE: other processes of the same user can no longer inspect the process.
      python(port, "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)"),
      `unshare -Urm ${python(port, "")}`,
      `unshare -Urpf chroot / ${python(port, "")}`,
      `(${python(port, "import os; os.setsid()")} &) ; sleep 1`,
      `bwrap --unshare-user --bind / / --tmpfs /tmp ${python(port, "")}`,
    ];
    const read: string[] = [];
    for (const way of ways) read.push(await shell(way));
    expect(read.filter((text) => text.includes("200 OK"))).toEqual([]);
    expect(read[0]).toMatch(/403 Forbidden[\s\S]*"code":"forbidden"/);
    // Not every system lets everybody create namespaces; the ways that need none must have reached the port.
    expect(read.filter((text) => text.includes("403 Forbidden")).length).toBeGreaterThanOrEqual(4);
  });

  test("commands with a hundred thousand open files are turned away without holding up the daemon", async () => {
    const { daemon, shell } = await open("secrets", user);
    const before = [
      "import os, resource, time",
      "most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]",
      "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))",
      'for _ in range(min(most, 30000) - 100): os.open("/dev/null", 0)',
      "for _ in range(6):",
      "  if os.fork() == 0: time.sleep(4), os._exit(0)",
    ].join("\n");
    // As in every test, the daemon's event loop is watched (support/daemon.ts).
    expect(await shell(python(portOf(daemon), before))).toContain("403 Forbidden");
  });

  test("commands with tens of thousands of connections are turned away without holding up the daemon", async () => {
    const { daemon, shell } = await open("secrets", user);
    const before = [
      "import os, resource, socket, time",
      "most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]",
      "resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))",
      "ready, done = os.pipe()",
      "for _ in range(4):",
      "  if os.fork() == 0:",
      '    server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen(100); kept = []',
      "    for _ in range(min(most // 2 - 50, 9000)):",
      "      one = socket.socket(); one.connect(server.getsockname()); kept += [one, server.accept()[0]]",
      '    os.write(done, b"x"); time.sleep(60); os._exit(0)',
      "for _ in range(4): os.read(ready, 1)",
    ].join("\n");
    expect(await shell(python(portOf(daemon), before))).toContain("403 Forbidden");
  });

  test("whoever stands outside is served while commands run, also from a view of its own", { timeout: 120_000 }, async () => {
    const { daemon, shell, home } = await open("secrets", user);
    const port = portOf(daemon);
    const running = shell("echo up > wiki/pages/up.md; sleep 8");
    await until("a command that runs", async () => (await exec("pgrep", ["-f", "up > wiki/pages/up.md"])).code === 0);
    expect((await daemon.fetch("/api/health")).status).toBe(200);
    // Like a browser from a package that brings its own mount namespace.
    const browser = await exec("setpriv", [
      ...asUser(user),
      "bwrap",
      "--bind",
      "/",
      "/",
      "--tmpfs",
      "/mnt",
      "bash",
      "-c",
      get(port),
    ]);
    expect(browser.stdout).toContain("200 OK");
    const other = await exec("setpriv", [...asUser(user === "root" ? "ordinary" : user), "bash", "-c", get(port)]);
    expect(other.stdout).toContain("200 OK");
    // Commands of the swarm program run in the same sandbox but are not children of the daemon.
    const ground = { home, userHome: temporaryFolder(), project: temporaryFolder(), secret: "" };
    give(ground.project, user);
    const swarm = await attack({ height: "secrets", user, ground, script: get(port) });
    expect(swarm.stdout).toContain("403 Forbidden");
    await running;
  });

  test("without a network a command reaches no port at all", { timeout: 120_000 }, async () => {
    const { daemon, shell } = await open("workspace", user, { sandboxNetwork: false });
    expect(await shell(get(portOf(daemon)))).toMatch(/Connection refused|unreachable/);
  });
});

test("while nothing is sandboxed, a connection is judged in about a millisecond among 300 processes", async () => {
  const sleepers = Array.from({ length: 300 }, () => spawn("sleep", ["60"], { stdio: "ignore" }));
  onTestFinished(() => {
    for (const each of sleepers) each.kill("SIGKILL");
  });
  let clock = 0;
  const sandboxed = createSandboxedProcesses(temporaryFolder(), () => clock);
  // Processes that the daemon has known for a while need not be examined again.
  sandboxed.list();
  clock = 60_000;
  sandboxed.list();
  const quickest = (work: () => unknown) =>
    Math.min(
      ...Array.from({ length: 100 }, () => {
        const began = performance.now();
        work();
        return performance.now() - began;
      }),
    );
  expect(sandboxed.list()).toEqual([]);
  // A busy machine makes most tries slow and has processes of its own, so only the quickest try counts.
  expect(quickest(() => sandboxed.list())).toBeLessThan(1 + quickest(() => readdirSync("/proc")));
});
