import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { SandboxHeight } from "../../src/home/safety-config.ts";
import { type ExecResult, exec } from "../../src/process/exec.ts";
import { createSandbox, type SandboxProfile, type WallSettings } from "../../src/process/sandbox.ts";
import { type AtTheEnd, temporaryFolder } from "./home.ts";
import { ensureProgram } from "./program.ts";

/** The sandbox tests need Linux and bubblewrap, and each of the users below must be able to use it. */
await ensureProgram("bwrap", "bubblewrap");
await ensureProgram("setpriv", "util-linux");
await ensureProgram("python3");
await ensureProgram("git");

export const HEIGHTS = ["secrets", "project", "workspace"] as const;
const BEGAN = "the-attack-began";
/** Contains only programs that both users can run. */
const SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

/** Root attacks as root and as an unprivileged user; any other user attacks as themselves. */
export const USERS: readonly ("root" | "ordinary")[] = isRoot ? ["root", "ordinary"] : ["ordinary"];

/** Every sandbox level with every user. */
export const EVERYONE = HEIGHTS.flatMap((height) => USERS.map((user) => [height, user] as const));

/** A user's home that contains IO's data folder, a project, and private files. */
export function makeGround(user: "root" | "ordinary", atTheEnd: AtTheEnd = onTestFinished) {
  const secret = `hush-${randomBytes(8).toString("hex")}`;
  const root = realpathSync(temporaryFolder(atTheEnd));
  const userHome = join(root, "homes", "user");
  const home = join(userHome, ".io");
  const project = join(userHome, "work", "project");
  const files: Record<string, string> = {
    ...{ ".io/token": secret, ".io/config.json": secret, ".io/io.db": secret, ".io/io.db-wal": secret, ".io/sessions/s": secret },
    ...{ ".io/daemon.json": "{}", ".io/daemon.lock": "", ".io/logs/io.log": "a line", ".io/wiki/pages/a.md": "a page" },
    ...{ ".io/wiki/index.md": "the index", ".io/wiki/log.md": "the log", ".io/wiki/.versions/a": "a version" },
    ...{ ".io/wiki/sources/s.txt": "a source", ".io/skills/one/SKILL.md": "a skill", ".io/runs/other/record": "a record" },
    ...{ ".io/runs/other/worktrees/run/code": "theirs", "work/project/code": "ours", "work/other/code": "another" },
    ...{ ".ssh/id": "private key", ".bashrc": "# mine" },
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(userHome, name, ".."), { recursive: true });
    writeFileSync(join(userHome, name), text);
  }
  give(root, user);
  return { userHome, home, project, secret };
}
export type Ground = ReturnType<typeof makeGround>;

/** Gives a folder and everything in it to the attacking user, so that only the sandbox protects it. */
export function give(folder: string, user: "root" | "ordinary"): void {
  if (!isRoot || user === "root") return;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) give(join(folder, entry.name), user);
    else if (!entry.isSymbolicLink()) chownSync(join(folder, entry.name), NOBODY, NOBODY);
  }
  chownSync(folder, NOBODY, NOBODY);
  chmodSync(folder, 0o755);
}

export interface Attack {
  height: SandboxHeight;
  user: "root" | "ordinary";
  ground: Ground;
  script: string;
  profile?: SandboxProfile;
  cwd?: string;
  settings?: Partial<WallSettings>;
  env?: NodeJS.ProcessEnv;
  readOnly?: string[];
}

/** Runs a script inside the sandbox, as the attacking user. */
export async function attack(options: Attack): Promise<ExecResult> {
  const { height, user, ground, script, profile, cwd = ground.project, settings = {}, readOnly = [] } = options;
  const env: NodeJS.ProcessEnv = { PATH: SYSTEM_PATH, HOME: ground.userHome, ...options.env };
  const sandbox = createSandbox({
    home: ground.home,
    guard: { readOnly: () => readOnly },
    settings: () => ({ sandbox: height, sandboxRead: [], sandboxNetwork: true, ...settings }),
    env,
  });
  const argv = await sandbox.wrap(["/bin/bash", "-c", `echo ${BEGAN}\n${script}`], cwd, profile);
  // IO creates these as the user who runs it, who may not be the attacking user here.
  for (const made of ["scratch", "work"]) if (existsSync(join(ground.home, made))) give(join(ground.home, made), user);
  const result = await exec("setpriv", [...asUser(user), ...argv], { env, deadlineMs: 30_000, cwd: "/" });
  // An attack that never started proves nothing.
  if (!result.output.includes(BEGAN)) throw new Error(`the attack could not be made: ${result.output}`);
  const without = (text: string) => text.replace(`${BEGAN}\n`, "");
  return { ...result, output: without(result.output), stdout: without(result.stdout) };
}

/** The setpriv arguments that run a program as a user. */
export function asUser(user: "root" | "ordinary"): string[] {
  return isRoot && user === "ordinary" ? [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, "--clear-groups", "--"] : ["--"];
}
