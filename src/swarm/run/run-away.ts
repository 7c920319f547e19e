import { join } from "node:path";
import type { Away } from "../../away/away.ts";
import type { AwayPlace } from "../../away/errand.ts";
import { installedIn } from "../../git/dependencies.ts";
import type { SandboxHeight } from "../../lib/safety-config.ts";
import type { ChecksDeps } from "../streams/checks.ts";
import type { AgentSessionsDeps } from "./agent-sessions.ts";
import type { Workplace } from "./workspace.ts";

export interface RunAwayDeps {
  away: Pick<Away, "at" | "checks"> | undefined;
  runId: string;
  projectPath: string;
  height: SandboxHeight | undefined;
  deadlineMs: number;
  signal: AbortSignal;
  /** Undefined until it is open. */
  workplace: () => Workplace | undefined;
}

/** How the agents and checks of a run on a branch can be at work on other hosts. */
export function createRunAway({ away, runId, projectPath, height, deadlineMs, signal, workplace }: RunAwayDeps) {
  const place = (cwd: string): Omit<AwayPlace, "access"> | undefined => {
    const at = workplace();
    if (at?.kind !== "branch") return undefined;
    const { repo, folder } = at;
    const path = repo.prefix === "" ? cwd : cwd.slice(0, -repo.prefix.length - 1);
    const installed = installedIn(repo);
    return { repo, path, scratch: join(folder, "away"), cwd, installed, projectPath, height: height ?? null };
  };
  const elsewhere: ChecksDeps["elsewhere"] = async ({ command, cwd }, folder, owner) => {
    const at = place(folder);
    const asked = { owner: `${runId}/${owner}`, checks: [{ command, cwd }], deadlineMs, signal };
    const done = at && (await away?.checks({ ...at, access: "write" }, asked));
    return done && { end: done.ends[0]!, worker: done.worker };
  };
  const sessions: AgentSessionsDeps["away"] = away && { at: away.at, place };
  return away ? { sessions, elsewhere } : {};
}
