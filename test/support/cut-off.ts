import { spawn } from "node:child_process";
import { join } from "node:path";
import { packageRoot } from "../../src/lib/package-root.ts";
import { bundled } from "./bundled.ts";
import { temporaryFolder } from "./home.ts";
import { killedAll } from "./processes.ts";
import { ensureProgram } from "./program.ts";
import { until } from "./until.ts";
import type { Work } from "./worktree-maker.ts";

/** Works on a worktree in a separate process and kills it once `isThere` holds. Returns false if the work ended before that. */
export async function cutOff(project: string, path: string, isThere: () => boolean, work?: Work): Promise<boolean> {
  // Without the sandbox, git outlives the process that started it and is not interrupted.
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
