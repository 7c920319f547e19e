import { tmpdir } from "node:os";
import { join } from "node:path";
import { createGit, type Git, type GitDeps } from "../../src/git/command.ts";
import { readUserSettings } from "../../src/git/user-settings.ts";
import { pathsOf } from "../../src/home/paths.ts";
import type { SandboxHeight } from "../../src/home/safety-config.ts";
import { packageRoot } from "../../src/lib/package-root.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { projectEnvironment } from "../../src/process/environment.ts";
import { findPrograms } from "../../src/process/programs.ts";
import { createSandbox, unwrapped, type Wrap } from "../../src/process/sandbox.ts";
import { createShells } from "../../src/process/shells.ts";
import { createPathGuard } from "../../src/tools/guard.ts";

/** Git as the daemon sets it up, but without the sandbox unless a test passes one. */
export function testGit(more: Partial<GitDeps> = {}, env: NodeJS.ProcessEnv = process.env): Git {
  const home = more.home ?? join(tmpdir(), "io-no-such-home");
  const programs = findPrograms({ env, closed: [home] });
  return createGit({
    program: () => programs.find("git"),
    wrap: unwrapped,
    environment: () => projectEnvironment(env, createRedactor()),
    user: readUserSettings({ program: programs.find("git"), env }),
    home,
    ...more,
  });
}

/** The same git inside the sandbox, if this machine supports it, and the sandbox's `wrap`. */
export function walledGit(
  home: string,
  env: NodeJS.ProcessEnv = process.env,
  sandbox: SandboxHeight = "secrets",
): { git: Git; wrap: Wrap } {
  const guard = createPathGuard({ paths: pathsOf({ IO_HOME: home }), packageRoot, selfEdit: () => false });
  const { wrap } = createSandbox({ home, guard, settings: () => ({ sandbox, sandboxRead: [], sandboxNetwork: true }) });
  return { git: testGit({ home, wrap, shells: createShells(wrap) }, env), wrap };
}
