import { join } from "node:path";
import type { SandboxHeight } from "../../home/safety-config.ts";
import type { RemoteFolder } from "../../workers/remote/remote-job.ts";
import type { RemoteWork } from "../../workers/remote/remote-work.ts";
import type { AgentSessionsDeps } from "../agents/agent-sessions.ts";
import type { ChecksDeps } from "../checks/checks.ts";
import type { Workplace } from "../workspace/workspace.ts";

export interface RunOnWorkersDeps {
  remoteWork: Pick<RemoteWork, "at" | "checks"> | undefined;
  runId: string;
  projectPath: string;
  height: SandboxHeight | undefined;
  deadlineMs: number;
  signal: AbortSignal;
  /** Undefined until it is open. */
  workplace: () => Workplace | undefined;
}

/** Lets the agents and checks of a run on a branch work on other hosts. */
export function createRunOnWorkers({ remoteWork, runId, projectPath, height, deadlineMs, signal, workplace }: RunOnWorkersDeps) {
  const place = (cwd: string): Omit<RemoteFolder, "access"> | undefined => {
    const at = workplace();
    if (at?.kind !== "branch") return undefined;
    const { repo, folder, names, made } = at;
    const path = repo.prefix === "" ? cwd : cwd.slice(0, -repo.prefix.length - 1);
    const installed = [...new Set([...names, ...made])];
    return { repo, path, scratch: join(folder, "away"), cwd, installed, projectPath, height: height ?? null };
  };
  const elsewhere: ChecksDeps["elsewhere"] = async ({ command, cwd, instead }, folder, owner) => {
    const at = place(folder);
    const asked = { owner: `${runId}/${owner}`, checks: [{ command, cwd, instead }], deadlineMs, signal };
    const done = at && (await remoteWork?.checks({ ...at, access: "write" }, asked));
    return done && { end: done.ends[0]!, worker: done.worker };
  };
  const sessions: AgentSessionsDeps["remoteWork"] = remoteWork && { at: remoteWork.at, place };
  return remoteWork ? { sessions, elsewhere } : {};
}
