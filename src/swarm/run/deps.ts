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
  /** Where what was installed for one run is kept for the next; without it nothing is. */
  installedFolder?: string;
  /** Where the runtime keeps its sessions, for `clean`. */
  sessionsFolder?: string;
  /** IO's own, of which no part is a project but for the worktrees of runs. */
  dataFolder?: string;
  log: Log;
  /** The kinds of phases a pipeline may have. */
  kinds?: readonly PhaseKind[];
  /** The agents and the pipeline that ship with us. */
  shipped?: { agents: string; pipeline: string };
  /** Handed to the project's checks without its secrets; GITHUB_STEP_SUMMARY is read from it. */
  env?: NodeJS.ProcessEnv;
  onSay?: (said: Said, runId: string) => void;
  /** Where what its agents use is written down, and asked for. */
  spending?: Spending;
  /** Where agents and checks of runs on a branch can work too; without it everything is done here. */
  remoteWork?: Pick<RemoteWork, "at" | "checks">;
  /** What the user ruled and holds for work on a project. */
  rulesFor?: (projectPath: string) => string;
  checkDeadlineMs?: number;
  /** Keeps the project's checks, which run what agents wrote, away from IO's secrets. */
  wrap: Wrap;
  /** Takes secrets out of what checks print, and out of their environment. */
  redactor: Redactor;
  /** What a project is held to beyond what holds for all. */
  heldIn?: (projectPath: string) => SquadSafety;
  now?: () => Date;
}
