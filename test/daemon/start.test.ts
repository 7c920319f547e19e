import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, test } from "vitest";
import { isAlive } from "../../src/lib/alive.ts";
import { exec } from "../../src/process/exec.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { providerEnvironment, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { soon } from "../support/soon.ts";
import { until } from "../support/until.ts";

test("a second daemon on the same home refuses to start and names the first", async () => {
  const daemon = await startDaemonProcess(temporaryHome());
  const second = await runIo(["--daemon"], daemon.home);
  expect(second.code).toBe(1);
  expect(second.stderr).toContain(`pid ${daemon.pid}`);
  expect((await fetch(`${daemon.url}/api/health`)).status).toBe(200);
});

test("a daemon.json that a dead daemon left does not block a start", async () => {
  const home = temporaryHome();
  writeFileSync(
    join(home, "daemon.json"),
    JSON.stringify({ pid: 999_999_9, host: "127.0.0.1", port: 1, version: "0", startedAt: "" }),
  );
  const daemon = await startDaemonProcess(home);
  expect(JSON.parse(readFileSync(join(home, "daemon.json"), "utf8"))).toMatchObject({ pid: daemon.pid, host: "127.0.0.1" });
  await daemon.kill("SIGTERM");
  expect(existsSync(join(home, "daemon.json"))).toBe(false);
});

test("a config that does not parse is left as it is, with exit 2", async () => {
  const home = temporaryHome();
  writeFileSync(join(home, "config.json"), '{"port": 3170,');
  const result = await runIo(["--daemon"], home);
  expect(result.code).toBe(2);
  expect(result.stderr).toMatch(/config\.json.*not valid JSON.*left as it is/s);
  expect(readFileSync(join(home, "config.json"), "utf8")).toBe('{"port": 3170,');
});

test("an unknown key and a bad value are named, with what is allowed, and exit 2", async () => {
  const result = await runIo(["--daemon"], temporaryHome({ prot: 1, logLevel: "loud", turnCapMs: -1, telegramBotToken: 5 }));
  expect(result.code).toBe(2);
  expect(result.stderr).toMatch(/prot: no such key\. Did you mean "port"\?/);
  expect(result.stderr).toMatch(/logLevel: "loud" is not allowed.*debug.*error/);
  expect(result.stderr).toMatch(/turnCapMs: -1/);
});

test("a host that others can reach is refused unless it is allowed", async () => {
  const result = await runIo(["--daemon"], temporaryHome(), { IO_HOST: "0.0.0.0" });
  expect(result.code).toBe(2);
  expect(result.stderr).toContain("allowRemote");
});

test("a database of a newer version is refused and not touched", async () => {
  const home = temporaryHome();
  const db = new DatabaseSync(join(home, "io.db"));
  db.exec(
    "CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL) WITHOUT ROWID; INSERT INTO migrations VALUES ('9999-future', ''); CREATE TABLE precious (x); INSERT INTO precious VALUES (1)",
  );
  db.close();
  const result = await runIo(["--daemon"], home);
  expect(result.code).toBe(1);
  expect(result.stderr).toMatch(/newer IO.*9999-future.*not touched/s);
  const after = new DatabaseSync(join(home, "io.db"));
  expect(after.prepare("SELECT count(*) AS n FROM precious").get()).toEqual({ n: 1 });
  expect(after.prepare("SELECT name FROM migrations").all()).toEqual([{ name: "9999-future" }]);
  after.close();
});

test("a damaged database is refused with a remedy", async () => {
  const home = temporaryHome();
  writeFileSync(join(home, "io.db"), "this is no database, though it is long enough to look at ".repeat(40));
  const result = await runIo(["--daemon"], home);
  expect(result.code).toBe(1);
  expect(result.stderr).toMatch(/damaged/);
});

/** A small separate file system. Mounting needs root; without it, the test fails and says why. */
async function tinyDisk(megabytes: number): Promise<{ folder: string; unmount(): Promise<void> }> {
  const folder = temporaryFolder();
  const mounted = await exec("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0700`, "tmpfs", folder]);
  if (mounted.code !== 0) throw new Error(`a small disk is needed for this test: ${mounted.output}`);
  return { folder, unmount: async () => void (await exec("umount", ["-l", folder])) };
}

test("a message that a full disk cannot hold is refused, and everything acknowledged before is answered later", async () => {
  const model = await scriptedModel(() => ({ say: "done" }));
  const { folder, unmount } = await tinyDisk(24);
  try {
    const home = join(folder, "home");
    mkdirSync(home, { mode: 0o700 });
    const daemon = await startDaemonProcess(home, providerEnvironment(model.url));
    const kept = await daemon.ask({ text: "before" });
    writeFileSync(join(folder, "ballast"), "");
    await exec("dd", ["if=/dev/zero", `of=${join(folder, "ballast")}`, "bs=4k"]);
    const response = await daemon.fetch("/api/messages", {
      method: "POST",
      body: JSON.stringify({ text: "x".repeat(200_000) }),
      headers: { "content-type": "application/json" },
    });
    expect(response.status).toBe(503);
    expect(((await response.json()) as { error: { message: string } }).error.message).toMatch(/disk is full/i);
    await exec("rm", [join(folder, "ballast")]);
    expect((await daemon.json<Message>("GET", `/api/messages/${kept.id}`)).reply).toBe("done");
    expect((await daemon.ask({ text: "after" })).reply).toBe("done");
    await daemon.kill("SIGTERM");
  } finally {
    await unmount();
  }
});

test("a home on a read-only disk is a sentence that helps", async () => {
  const { folder, unmount } = await tinyDisk(8);
  try {
    const home = join(folder, "home");
    mkdirSync(home, { mode: 0o700 });
    await exec("mount", ["-o", "remount,ro", folder]);
    const result = await runIo(["--daemon"], home);
    expect(result.code).toBe(1);
    expect(result.stderr).toMatch(/cannot be (made|written)/);
    expect(result.stderr).not.toMatch(/\n\s+at /);
  } finally {
    await unmount();
  }
});

test("the data folder and its secrets are readable by their owner alone, even if they were not before", async () => {
  const home = temporaryHome();
  writeFileSync(join(home, "token"), "an-old-token-of-mine\n");
  chmodSync(join(home, "token"), 0o644);
  chmodSync(home, 0o755);
  const daemon = await startDaemonProcess(home);
  const mode = (name: string) => (statSync(join(home, name)).mode & 0o777).toString(8);
  expect({ home: mode("."), token: mode("token"), db: mode("io.db"), sessions: mode("sessions") }).toEqual({
    home: "700",
    token: "600",
    db: "600",
    sessions: "700",
  });
  expect(daemon.token).toBe("an-old-token-of-mine");
});

test("no secret reaches the log", async () => {
  const model = await scriptedModel(() => ({ status: 400, message: "the key scripted-key-0123456789 is wrong" }));
  const daemon = await startDaemonProcess(temporaryHome({ logLevel: "debug" }), providerEnvironment(model.url));
  const failed = await daemon.ask({ text: "hello" });
  expect(failed.error?.message).toContain("the key [secret] is wrong");
  const log = readFileSync(join(daemon.home, "logs", "io.log"), "utf8");
  expect(log).not.toContain(daemon.token);
  expect(log + daemon.output() + JSON.stringify(failed)).not.toContain("scripted-key-0123456789");
});

test("without a terminal, io serves in the foreground until it is stopped, and says which model it found", async () => {
  const daemon = await startDaemonProcess(temporaryHome());
  await until("the banner", () =>
    /serves at http:\/\/127\.0\.0\.1:\d+.*rehearsal model.*COPILOT_PROVIDER_BASE_URL/s.test(daemon.output()),
  );
  await daemon.kill("SIGTERM");
  expect(daemon.child.exitCode).toBe(0);
});

test("a daemon whose data folder was taken away still ends when it is told to, and its runtime with it", async () => {
  const daemon = await startDaemonProcess(temporaryHome());
  const runtime = daemon.runtimePid();
  rmSync(daemon.home, { recursive: true, force: true });
  const told = performance.now();
  await daemon.kill("SIGTERM");
  expect(performance.now() - told).toBeLessThan(soon(9_000));
  await until("the runtime to be gone", () => !isAlive(runtime));
});
