import type { Away } from "../../away/away.ts";
import type { Engine } from "../../engine/port.ts";
import type { Git } from "../../git/command.ts";
import type { Log } from "../../lib/log.ts";
import type { Redactor } from "../../lib/redact.ts";
import type { SquadSafety } from "../../lib/safety-config.ts";
import type { Wrap } from "../../process/sandbox.ts";
import type { Check } from "../../project/commands.ts";
import type { Emit } from "../../protocol/events.ts";
import type { Said } from "../../protocol/runs.ts";
import type { Spending } from "../../protocol/usage.ts";
import type { Store } from "../../store/open.ts";
import type { PhaseKind } from "../phases/kind.ts";
import type { Bind } from "./agent-sessions.ts";

/** What Swarm is built of. */
export interface SwarmDeps {
  store: Store;
  engine: Pick<Engine, "session" | "deleteSession" | "serving" | "models">;
  emit: Emit;
  /** The tools of a pipeline agent, behind the gate. */
  bind: Bind;
  git: Git;
  findChecks: (folder: string) => Promise<Check[]>;
  /** Where runs keep their worktrees and documents. */
  runsFolder: string;
  /** IO's own, of which no part is a project but for the worktrees of runs. */
  dataFolder?: string;
  log: Log;
  /** The kinds of phases a pipeline may have. */
  kinds?: readonly PhaseKind[];
  /** The agents and the pipeline that ship with us. */
  shipped?: { agents: string; pipeline: string };
  /** Handed to the project's checks without its secrets; GITHUB_STEP_SUMMARY is read from it. */
  env?: NodeJS.ProcessEnv;
  onSay?: (said: Said) => void;
  /** Where what its agents use is written down, and asked for. */
  spending?: Spending;
  /** Where agents and checks of runs on a branch can work too; without it everything is done here. */
  away?: Pick<Away, "at" | "checks">;
  checkDeadlineMs?: number;
  /** Keeps the project's checks, which run what agents wrote, away from IO's secrets. */
  wrap: Wrap;
  /** Takes secrets out of what checks print, and out of their environment. */
  redactor: Redactor;
  /** What a project is held to beyond what holds for all. */
  heldIn?: (projectPath: string) => SquadSafety;
  now?: () => Date;
}
