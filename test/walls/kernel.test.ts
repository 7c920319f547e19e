import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { exec } from "../../src/process/exec.ts";
import { until } from "../support/until.ts";
import { attack, EVERYONE, give, makeGround, USERS } from "../support/wall.ts";

// None of these attacks does harm if it succeeds: files are opened but not written.

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

/** Listens on a socket that anybody may connect to. */
async function listenAt(path: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  const server = createServer();
  await new Promise<void>((ready) => server.listen(path, ready));
  chmodSync(path, 0o777);
  onTestFinished(() => void server.close());
}

test.each(EVERYONE)(
  "no socket that the environment names can be reached, also one that is made while a command runs (%s, %s)",
  async (height, user) => {
    const ground = makeGround(user);
    const at = (name: string) => join(ground.userHome, "sockets", name);
    const uid = process.getuid?.() ?? 0;
    const files: Record<string, string> = {
      ...{ bus: at("dbus/bus"), tmux: at("own-tmux/default"), screen: at("screens/1.host"), wayland: at("runtime/wayland-0") },
      ...{ editor: at("editor/hook.sock"), terminal: at("mixed/kitty"), project: join(ground.project, "agent.sock") },
    };
    for (const path of Object.values(files)) await listenAt(path);
    writeFileSync(at("mixed/notes"), "plain");
    mkdirSync(at("made-later"));
    const later = [
      join(at("tmux"), `tmux-${uid}`, "default"),
      at("dbus/second"),
      at("screens/2.host"),
      at("made-later/sway.sock"),
    ];
    mkdirSync(at("tmux"));
    give(join(ground.userHome, "sockets"), user);
    give(ground.project, user);
    const started = join(ground.project, "started");
    const connect = (paths: string[]) =>
      `python3 - <<'END'\nimport socket\nfor path in ${JSON.stringify(paths)}:\n  try:\n    socket.socket(socket.AF_UNIX).connect(path); print("BREACH", path)\n  except OSError: pass\nEND`;
    const attacking = attack({
      ...{ height, user, ground, settings: { sandboxRead: [join(ground.userHome, "sockets")] } },
      env: {
        DBUS_SESSION_BUS_ADDRESS: `unix:path=${files.bus},guid=0123`,
        TMUX: `${files.tmux},77,0`,
        TMUX_TMPDIR: at("tmux"),
        STY: "1.host",
        SCREENDIR: at("screens"),
        XDG_RUNTIME_DIR: at("runtime"),
        WAYLAND_DISPLAY: "wayland-0",
        VSCODE_IPC_HOOK_CLI: files.editor,
        KITTY_LISTEN_ON: `unix:${files.terminal}`,
        SOME_AGENT: files.project,
        SWAYSOCK: at("made-later/sway.sock"),
      },
      script: [
        connect(Object.values(files)),
        `touch ${started}; while [ ! -e ${started}.made ]; do sleep 0.05; done`,
        connect(later),
        `cat ${at("mixed/notes")}; echo; echo looked`,
      ].join("\n"),
    });
    await until("the command to run", () => existsSync(started));
    for (const path of later) await listenAt(path);
    writeFileSync(`${started}.made`, "");
    expect((await attacking).stdout.trim()).toBe("plain\nlooked");
  },
);

test.each(EVERYONE)("the holders of a person's keys and connections are out of reach (%s, %s)", async (height, user) => {
  const ground = makeGround(user);
  const at = (name: string) => join(ground.userHome, name);
  const tmp = `/tmp/ssh-io${randomBytes(6).toString("hex")}`;
  onTestFinished(() => rmSync(tmp, { recursive: true, force: true }));
  const sockets = [
    ...[".gnupg/S.gpg-agent", ".gnupg/S.gpg-agent.ssh", ".gnupg/S.scdaemon", "keys/S.gpg-agent", ".cache/keyring-x1/control"].map(
      at,
    ),
    ...[".ssh/agent/s.1.agent", ".ssh/user@host:22", ".ssh/control/user@host", `${tmp}/agent.1`].map((path) =>
      path.startsWith("/") ? path : at(path),
    ),
  ];
  const named = at("own-agent/agent.7");
  for (const path of [...sockets, named]) await listenAt(path);
  writeFileSync(at(".gnupg/pubring.kbx"), "public keys");
  give(ground.userHome, user);
  give(tmp, user);
  const { stdout } = await attack({
    ...{ height, user, ground, settings: { sandboxRead: [ground.userHome] } },
    env: { GNUPGHOME: at("keys"), SSH_AUTH_SOCK: named },
    script: [
      `python3 - <<'END'\nimport socket\nfor path in ${JSON.stringify([...sockets, named])}:\n  try:\n    socket.socket(socket.AF_UNIX).connect(path); print("reached", path)\n  except OSError: pass\nEND`,
      `cat ${at(".gnupg/pubring.kbx")} 2>/dev/null; echo`,
    ].join("\n"),
  });
  // The agent named by the environment stays reachable, for git over ssh. The files beside a socket have not changed.
  expect(stdout.trim()).toBe(`reached ${named}\npublic keys`);
});

test.each(USERS)("without a network, abstract sockets are out of reach of a workspace (%s)", async (user) => {
  const ground = makeGround(user);
  const name = `io-test-${process.pid}-${user}`;
  const listener = spawn("python3", [
    "-c",
    `import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind("\\0${name}"); s.listen(); print("ready", flush=True); sys.stdin.read()`,
  ]);
  onTestFinished(() => void listener.kill());
  await once(listener.stdout, "data");
  const script = `python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("\\0${name}"); print("connected")' 2>/dev/null; echo looked`;
  const common = { height: "workspace" as const, user, ground, script };
  expect((await attack({ ...common, settings: { sandboxNetwork: false } })).stdout.trim()).toBe("looked");
  expect((await attack(common)).stdout.trim()).toBe("connected\nlooked");
});
