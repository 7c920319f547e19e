import { existsSync } from "node:fs";
import { join } from "node:path";
import { realOf } from "../../lib/real-path.ts";
import { isWithin } from "../../lib/within.ts";

/** Sockets of those who start programs for whoever asks, outside the wall; hidden at every height. */
export function hideDoors(env: NodeJS.ProcessEnv, uid = process.getuid?.() ?? 0): string[] {
  const terminals = join(env.TMUX_TMPDIR ?? "/tmp", `tmux-${uid}`);
  const folders = ["/run/user", "/run/dbus", "/run/systemd/private", "/run/screen", "/run/tmux", terminals];
  const there = folders.filter((path) => existsSync(path)).map((path) => realOf(path));
  const agent = env.SSH_AUTH_SOCK === undefined ? undefined : realOf(env.SSH_AUTH_SOCK);
  const kept = agent !== undefined && there.some((folder) => isWithin(folder, agent)) ? ["--bind-try", agent, agent] : [];
  return [...there.flatMap((path) => (path.endsWith("private") ? ["--ro-bind", "/dev/null", path] : ["--tmpfs", path])), ...kept];
}

/** Sockets of those who run containers. Whoever may use one can see every file of the machine; projects need them, so they stay in sight. */
export const CONTAINER_SOCKETS = [
  "/run/docker.sock",
  "/run/podman/podman.sock",
  "/run/containerd/containerd.sock",
  "/var/lib/incus/unix.socket",
  "/var/snap/lxd/common/lxd/unix.socket",
];
