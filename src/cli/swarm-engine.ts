import type { Said } from "../protocol/runs.ts";
import type { Shell } from "./output.ts";

export type OpenSwarm = Awaited<ReturnType<typeof import("../daemon/core.ts").openSwarm>>;

/** Opens the pipeline with an engine in this process, and closes it after the work. */
export async function withSwarm<T>(
  shell: Shell,
  options: { onSay?: (said: Said) => void },
  work: (open: OpenSwarm) => Promise<T>,
): Promise<T> {
  const { openSwarm } = await import("../daemon/core.ts");
  const open = await openSwarm({ env: shell.env, ...options });
  try {
    return await work(open);
  } finally {
    await open.close();
  }
}
