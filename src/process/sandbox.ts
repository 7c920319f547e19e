import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { realOf } from "../lib/real-path.ts";
import { exec } from "./exec.ts";

/** How far a command can be kept from IO's secrets on this machine. */
export type SandboxStatus =
  | { kind: "hidden"; processes: boolean; detail: string }
  /** The commands run, but see what the user sees. */
  | { kind: "open"; detail: string };

export interface Sandbox {
  status(): Promise<SandboxStatus>;
  /** As well hidden as this machine can. Every program whose own settings a model could have written is run through it. */
  wrap: Wrap;
}

/** The program and arguments that run a command hidden; `writable` opens folders that are otherwise closed to writing. */
export type Wrap = (
  argv: readonly [string, ...string[]],
  cwd: string,
  options?: { writable?: readonly string[] },
) => Promise<[string, ...string[]]>;

/** Runs a command as it stands. */
export const unwrapped: Wrap = async (argv) => [...argv];

/** What the sandbox asks about IO's own files. */
export interface OwnFiles {
  /** Why a path may not be read, or nothing. */
  refuse(path: string, how: "read", cwd: string): string | undefined;
  /** The files and folders that no command may write just now. */
  readOnly(): string[];
}

export interface SandboxDeps {
  home: string;
  guard: OwnFiles;
  probe?: () => Promise<SandboxStatus>;
}

const BASE = [
  "--bind",
  "/",
  "/",
  "--dev-bind",
  "/dev",
  "/dev",
  "--die-with-parent",
  "--cap-drop",
  "CAP_SYS_ADMIN",
  "--cap-drop",
  "CAP_SYS_PTRACE",
];
const OWN_PROCESSES = ["--unshare-pid", "--proc", "/proc"];

/** Runs commands under bubblewrap where it works: everything is as it was, but for IO's own secrets and code. */
export function createSandbox({ home, guard, probe = probeSandbox }: SandboxDeps): Sandbox {
  const status = probe();
  return {
    status: () => status,
    async wrap(argv, cwd, { writable = [] } = {}) {
      const found = await status;
      if (found.kind === "open") return [...argv];
      const opened = writable.flatMap((path) => ["--bind", realOf(path), realOf(path)]);
      const masks = [...hide(home, guard), ...freeze(home, guard), ...opened];
      return ["bwrap", ...BASE, ...(found.processes ? OWN_PROCESSES : []), ...masks, "--chdir", cwd, "--", ...argv];
    },
  };
}

/** Tries bubblewrap by really hiding something with it: many systems have it and forbid it. */
export async function probeSandbox(): Promise<SandboxStatus> {
  if (process.platform !== "linux") return { kind: "open", detail: `there is no bubblewrap on ${process.platform}` };
  const folder = mkdtempSync(join(realOf(tmpdir()), "io-sandbox-"));
  try {
    const secret = join(folder, "inside", "secret");
    mkdirSync(dirname(secret));
    writeFileSync(secret, "");
    const look = [
      "--tmpfs",
      dirname(secret),
      "--remount-ro",
      dirname(secret),
      "--",
      "/bin/sh",
      "-c",
      'test ! -e "$1" && echo hidden',
      "sh",
      secret,
    ];
    let why = "";
    for (const processes of [true, false]) {
      const result = await exec("bwrap", [...BASE, ...(processes ? OWN_PROCESSES : []), ...look], { deadlineMs: 5_000 });
      if (result.ending === "not-started") return { kind: "open", detail: "bubblewrap (bwrap) is not installed" };
      if (result.code === 0 && result.stdout.trim() === "hidden") {
        return { kind: "hidden", processes, detail: `bubblewrap works${processes ? "" : ", without a process list of its own"}` };
      }
      why = result.output.trim().split("\n")[0] ?? "";
    }
    return { kind: "open", detail: `bubblewrap is installed but may not be used here: ${why.slice(0, 200)}` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Puts an empty folder over the data folder, and back into it all that is no secret. What is made there later stays hidden too. */
function hide(folder: string, guard: OwnFiles): string[] {
  const home = realOf(folder);
  if (!existsSync(home)) return [];
  const shown = readdirSync(home)
    .map((name) => join(home, name))
    .filter((path) => guard.refuse(path, "read", home) === undefined);
  return ["--tmpfs", home, ...shown.flatMap((path) => ["--bind-try", path, path]), "--remount-ro", home];
}

function freeze(home: string, guard: OwnFiles): string[] {
  const hidden = `${realOf(home)}/`;
  const paths = guard
    .readOnly()
    .filter((path) => existsSync(path))
    .map((path) => realOf(path));
  return paths.flatMap((path) => [path.startsWith(hidden) ? "--ro-bind-try" : "--ro-bind", path, path]);
}
