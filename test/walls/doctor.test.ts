import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exec } from "../../src/process/exec.ts";
import { otherMountPoints, watchOtherMountPoints } from "../../src/process/wall/other-mounts.ts";
import type { DoctorReport, Finding } from "../../src/protocol/doctor.ts";
import { cleanEnvironment, IO, runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { ensureProgram } from "../support/program.ts";
import "../support/wall.ts";

await ensureProgram("unshare", "util-linux");
const findings = (json: string) => (JSON.parse(json) as DoctorReport).items.filter(({ check }) => check === "sandbox");

/** What the doctor reports about the sandbox when it is started by this program. */
async function doctorUnder(program: string, args: string[], home: string): Promise<Finding[]> {
  const result = await exec(program, [...args, process.execPath, IO, "doctor", "--json"], {
    ...{ env: cleanEnvironment(home), deadlineMs: 60_000, maxOutput: 1_000_000 },
  });
  return findings(result.stdout);
}

test("doctor tries to get past the wall at each height, and says what it tried", { timeout: 120_000 }, async () => {
  const home = temporaryHome();
  await startDaemonProcess(home);
  const [found, ...more] = findings((await runIo(["doctor", "--json"], home)).stdout);
  expect(more.filter(({ state }) => state === "failed")).toEqual([]);
  expect(found).toMatchObject({
    state: "ok",
    found: expect.stringMatching(/"secrets" held \(.*"project" held \(.*"workspace" held \(/),
  });
  for (const held of [
    "secrets are out of sight",
    "cannot be written",
    "device node",
    "kernel's settings",
    "capability",
    "IO's port",
  ])
    expect(found?.found.split(held)).toHaveLength(1 + 3 * (held === "cannot be written" ? 2 : 1));
});

test("where user namespaces are forbidden a workspace is said to be impossible, with what to do", {
  timeout: 120_000,
}, async () => {
  const forbidden = ["--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--"];
  const workspace = await doctorUnder("bwrap", forbidden, temporaryHome({ sandbox: "workspace" }));
  expect(workspace).toMatchObject([
    {
      state: "failed",
      found: expect.stringContaining("every command is refused"),
      remedy: expect.stringContaining("user namespaces"),
    },
  ]);
  const auto = await doctorUnder("bwrap", forbidden, temporaryHome({ mode: "auto" }));
  expect(auto[0]!.found).toContain(
    'in the mode "auto" commands run without a sandbox, and every command that is not known to read alone is asked for',
  );
  const secrets = await doctorUnder("bwrap", forbidden, temporaryHome());
  expect(secrets).toMatchObject([{ state: "warning", remedy: expect.stringContaining("docs/security.md") }]);
});

test("another mount that shows the data folder is told, and commands see nothing there", { timeout: 120_000 }, async () => {
  const home = temporaryHome();
  const elsewhere = join(temporaryFolder(), "elsewhere");
  mkdirSync(elsewhere);
  // Root in its own namespace may mount there without affecting anybody else.
  const own = process.getuid?.() === 0 ? ["-m"] : ["-Urm"];
  const script = `mount --bind ${home} ${elsewhere} && exec "$@"`;
  const found = await doctorUnder("unshare", [...own, "sh", "-c", script, "sh"], home);
  expect(found.find(({ state }) => state === "warning")).toMatchObject({
    found: expect.stringContaining(elsewhere),
    remedy: expect.stringContaining("Unmount"),
  });
  expect(found[0]?.found).toContain('"secrets" held');
  expect(found.filter(({ state }) => state === "failed")).toEqual([]);
});

test("mounts are told apart that show a folder, a part of it, or something else", () => {
  const mounts = [
    "29 1 254:0 / / rw - ext4 /dev/vda rw",
    "30 29 254:0 /home/u /mnt/with\\040space rw - ext4 /dev/vda rw",
    "31 29 254:0 /home/u/.io/sessions /mnt/part rw - ext4 /dev/vda rw",
    "32 29 254:0 /home/other /mnt/other rw - ext4 /dev/vda rw",
    "33 29 0:55 /home/u/.io /mnt/device rw - tmpfs none rw",
  ].join("\n");
  expect(otherMountPoints("/home/u/.io", mounts)).toEqual(["/mnt/with space/.io", "/mnt/part"]);
  expect(otherMountPoints("/home/nobody", mounts)).toEqual([]);
});

test("a mount is seen by the next command, and gone by the one after it was taken away", () => {
  const root = "29 1 254:0 / / rw - ext4 /dev/vda rw";
  let mounts = root;
  const others = watchOtherMountPoints("/home/u/.io", () => mounts);
  expect(others()).toEqual([]);
  mounts = `${root}\n30 29 254:0 /home/u /mnt/elsewhere rw - ext4 /dev/vda rw`;
  expect([others(), others()]).toEqual([["/mnt/elsewhere/.io"], ["/mnt/elsewhere/.io"]]);
  mounts = root;
  expect(others()).toEqual([]);
});
