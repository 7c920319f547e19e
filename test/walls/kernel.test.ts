import { mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { exec } from "../../src/process/exec.ts";
import { attack, EVERYONE, give, makeGround } from "../support/wall.ts";

// Whatever is tried here does no harm where it succeeds: files are opened and not written.

test.each(EVERYONE)("no capability is left, and none comes back (%s, %s)", async (height, user) => {
  const ground = makeGround(user);
  const { stdout } = await attack({
    ...{ height, user, ground },
    script: `grep -E '^(Cap(Eff|Prm|Bnd|Inh|Amb)|NoNewPrivs)' /proc/self/status; su -c id; sudo -n id; passwd -S; unshare -m true && echo BREACH`,
  });
  expect(stdout.match(/^Cap\w+:\s+0+$/gm)).toHaveLength(5);
  expect(stdout).toMatch(/^NoNewPrivs:\s+1$/m);
  expect(stdout).not.toMatch(/uid=0.*groups|BREACH/);
});

test.each(EVERYONE)("no device node can be made, and none of the machine's is there (%s, %s)", async (height, user) => {
  const ground = makeGround(user);
  const { stdout } = await attack({
    ...{ height, user, ground },
    script: [
      "mknod disk b 254 0 && echo BREACH; mknod /dev/memory c 1 1 && echo BREACH; mknod zero c 1 5 && echo BREACH",
      "unshare -Urm sh -c 'mknod disk b 254 0 && echo BREACH'",
      "find /dev -type b; ls /dev/kmsg /dev/mem /dev/kvm /dev/fuse /dev/loop-control /dev/vsock 2>/dev/null",
      "echo fine > /dev/null; head -c 1 /dev/urandom | wc -c; touch /dev/shm/mine && rm /dev/shm/mine && echo shared",
    ].join("\n"),
  });
  expect(stdout.trim()).toBe("1\nshared");
});

test.each(EVERYONE)("no setting of the kernel can be written (%s, %s)", { timeout: 120_000 }, async (height, user) => {
  const ground = makeGround(user);
  const { stdout } = await attack({
    ...{ height, user, ground },
    script: [
      "for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/hotplug /proc/sysrq-trigger /sys/kernel/uevent_helper /sys/kernel/mm/ksm/run; do (exec 3>>$f) 2>/dev/null && echo BREACH $f; done",
      "find /sys/fs/cgroup \\( -name release_agent -o -name cgroup.procs -o -name notify_on_release \\) -writable 2>/dev/null | sed 's/^/BREACH /'",
      "find /proc/sys /proc/irq /proc/bus /proc/fs /sys/kernel /sys/module /sys/power -type f -writable 2>/dev/null | sed 's/^/BREACH /' | head -5",
      "mkdir cg 2>/dev/null; mount -t cgroup2 none cg 2>/dev/null && echo BREACH; mount -o remount,rw /proc/sys 2>/dev/null && echo BREACH",
      `unshare -Urmpf sh -c 'mount -t proc proc /proc && (exec 3>>/proc/sys/kernel/core_pattern) && echo BREACH' 2>/dev/null`,
      `unshare -Urm sh -c 'umount -l /proc/sys; mount -o remount,rw /proc/sys; (exec 3>>/proc/sys/kernel/core_pattern) && echo BREACH' 2>/dev/null`,
      `unshare -UrmC sh -c 'mkdir cg2; mount -t cgroup -o rdma x cg2 && echo BREACH' 2>/dev/null`,
      "echo looked",
    ].join("\n"),
  });
  expect(stdout.trim()).toBe("looked");
});

test.each(EVERYONE)("other processes are out of sight and out of reach (%s, %s)", async (height, user) => {
  const ground = makeGround(user);
  const { stdout } = await attack({
    ...{ height, user, ground },
    script: [
      `kill -0 ${process.pid} 2>/dev/null && echo BREACH; tr '\\0' '\\n' < /proc/${process.pid}/environ 2>/dev/null | sed 's/^/BREACH /'`,
      `readlink /proc/${process.pid}/exe && echo BREACH; cat /proc/${process.ppid}/maps 2>/dev/null`,
      `grep -l "vites[t]" /proc/[0-9]*/cmdline 2>/dev/null | sed 's/^/BREACH /'`,
      "ls -d /proc/[0-9]* | wc -l",
    ].join("\n"),
  });
  expect(stdout).not.toContain("BREACH");
  expect(Number(stdout.trim())).toBeLessThan(10);
});

test.each(EVERYONE)("memory that others share is not in sight (%s, %s)", async (height, user) => {
  const made = await exec("ipcmk", ["-M", "4096", "-p", "0666"]);
  const id = /id: (\d+)/.exec(made.stdout)?.[1] ?? "";
  onTestFinished(async () => void (await exec("ipcrm", ["-m", id])));
  const ground = makeGround(user);
  const { stdout } = await attack({ height, user, ground, script: "cat /proc/sysvipc/shm | wc -l; ipcs -m | grep -c 4096" });
  expect(stdout.trim()).toBe("1\n0");
});

test.each(EVERYONE)("who starts programs for others is out of sight (%s, %s)", async (height, user) => {
  const ground = makeGround(user);
  const uid = process.getuid?.() ?? 0;
  const folder = join(ground.userHome, `tmux-${uid}`);
  mkdirSync(folder);
  const path = join(folder, "default");
  const server = createServer();
  await new Promise<void>((ready) => server.listen(path, ready));
  onTestFinished(() => void server.close());
  give(ground.userHome, user);
  const { stdout } = await attack({
    ...{ height, user, ground },
    env: { TMUX_TMPDIR: ground.userHome },
    script: [
      `python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("${path}"); print("BREACH")' 2>/dev/null`,
      "ls -A /run/user /run/dbus /run/systemd/private 2>/dev/null | grep -v '^/run' | grep .",
      "systemd-run --user --pipe id 2>/dev/null; systemd-run --pipe id 2>/dev/null; echo looked",
    ].join("\n"),
  });
  expect(stdout.trim()).toBe("looked");
});
