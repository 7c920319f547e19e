import type { Engine } from "../../engine/port.ts";
import type { Git } from "../../git/command.ts";
import type { SquadSafety } from "../../home/safety-config.ts";
import type { Log } from "../../lib/log.ts";
import type { Redactor } from "../../lib/redact.ts";
import type { Wrap } from "../../process/sandbox.ts";
import type { Emit } from "../../protocol/events.ts";
import type { Said } from "../../protocol/runs.ts";
import type { Spending } from "../../protocol/usage.ts";
import type { Store } from "../../store/open.ts";
import type { RemoteWork } from "../../workers/remote/remote-work.ts";
import type { Bind } from "../agents/agent-sessions.ts";
import type { CheckFinders } from "../checks/planned-checks.ts";
import type { PhaseKind } from "../phases/kind.ts";

/** What Swarm is built of. */
export interface SwarmDeps extends CheckFinders {
  store: Store;
  engine: Pick<Engine, "session" | "deleteSession" | "serving" | "models">;
  emit: Emit;
  /** The tools of a pipeline agent, behind the gate. */
  bind: Bind;
  git: Git;
  /** Where runs keep their worktrees and documents. */
  runsFolder: string;
  /** Caches what was installed for one run for the next; without it there is no cache. */
  installedFolder?: string;
  /** Where the runtime keeps its sessions, for `clean`. */
  sessionsFolder?: string;
  /** IO's own data folder, which contains no projects except the worktrees of runs. */
  dataFolder?: string;
  log: Log;
  /** The kinds of phases a pipeline may have. */
  kinds?: readonly PhaseKind[];
  /** The agents and the pipeline that ship with us. */
  shipped?: { agents: string; pipeline: string };
  /** Passed to the project's checks without its secrets; also holds GITHUB_STEP_SUMMARY. */
  env?: NodeJS.ProcessEnv;
  onSay?: (said: Said, runId: string) => void;
  /** Records and permits what its agents spend. */
  spending?: Spending;
  /** Lets agents and checks of runs on a branch work on other hosts; without it everything runs here. */
  remoteWork?: Pick<RemoteWork, "at" | "checks">;
  /** The user's standing rules for work on a project. */
  rulesFor?: (projectPath: string) => string;
  checkDeadlineMs?: number;
  /** Keeps the project's checks, which run what agents wrote, away from IO's secrets. */
  wrap: Wrap;
  /** Redacts secrets in the environment and output of checks. */
  redactor: Redactor;
  /** A project's safety settings, where stricter than the global ones. */
  safetyOf?: (projectPath: string) => SquadSafety;
  now?: () => Date;
}
