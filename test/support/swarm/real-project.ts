import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Check } from "../../../src/project/commands.ts";
import type { Run } from "../../../src/protocol/runs.ts";
import { git, type Harness, type HarnessOptions, startSwarm, write } from "./index.ts";
import { ON_BRANCH } from "./pipelines.ts";

/** Runs a program as a person would. Throws if it fails. */
export function run(cwd: string, program: string, ...args: string[]): string {
  return execFileSync(program, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

export function writeFiles(folder: string, files: Record<string, string>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

export interface RealProject {
  /** Committed. */
  files: Record<string, string>;
  /** What a person does in the checkout before the run, such as install or build. */
  prepare?: (project: string) => void;
  checks: Check[];
  /** The file that the engineer writes. */
  writes: [path: string, text: string];
  parts?: HarnessOptions["parts"];
  requireChecks?: boolean;
}

/** A complete run on a project that real tools have worked on, with an engineer who writes one file. */
export async function runOn({
  files,
  prepare,
  checks,
  writes,
  parts,
  requireChecks,
}: RealProject): Promise<Harness & { run: Run }> {
  const harness = await startSwarm({
    checks,
    files: { "swarm.config.yaml": ON_BRANCH, ...files },
    script: ({ role, afterTool }) => (role === "engineer" && !afterTool ? write(...writes) : undefined),
    ...(parts && { parts }),
  });
  const { project, swarm, settings } = harness;
  prepare?.(project);
  if (git(project, "status", "--porcelain") !== "") throw new Error("the project is not clean before the run");
  const handle = await swarm.start({ projectPath: project, issue: "Change it", settings, requireChecks });
  return { ...harness, run: await handle.finished };
}
