import { spawn } from "node:child_process";
import { join } from "node:path";
import { packageRoot } from "../../src/lib/package-root.ts";
import { bundled } from "./bundled.ts";
import { temporaryFolder } from "./home.ts";
import { killedAll } from "./processes.ts";
import { ensureProgram } from "./program.ts";
import { until } from "./until.ts";
import type { Work } from "./worktree-maker.ts";

/** Works in a worktree in a process of its own and ends that when it is in the middle of something; whether it was. */
export async function cutOff(project: string, path: string, isThere: () => boolean, work?: Work): Promise<boolean> {
  // Without a wall a git outlives whoever began it, and is not cut off.
  await ensureProgram("bwrap", "bubblewrap");
  const program = await bundled(join(packageRoot, "test", "support", "worktree-maker.ts"));
  const args = [program, project, path, temporaryFolder(), ...(work ? [JSON.stringify(work)] : [])];
  const child = spawn(process.execPath, args, { stdio: "inherit", detached: true });
  let wasThere = false;
  await until(
    "it to be in the middle of it",
    () => {
      wasThere ||= isThere();
      return wasThere || child.exitCode !== null;
    },
    20_000,
  );
  await killedAll(child);
  return wasThere;
}
