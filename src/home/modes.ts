import { usageError } from "../lib/errors.ts";
import { ApprovalMode, Mode, SandboxHeight, type SquadSafety } from "./safety-config.ts";

/** The mode if nobody chose one. */
export const DEFAULT_MODE: Mode = "auto";

/** What a mode means for a call: the sandbox height, and when a person is asked. */
export interface Protection {
  sandbox: SandboxHeight;
  approvals: ApprovalMode;
}

const MADE_OF: Readonly<Record<Mode, Protection>> = {
  plan: { sandbox: "project", approvals: "effects" },
  ask: { sandbox: "project", approvals: "effects" },
  auto: { sandbox: "project", approvals: "wall" },
  full: { sandbox: "secrets", approvals: "none" },
};

/** The safety settings of config.json. Explicit settings override the mode. */
export interface ProtectionSettings {
  mode: Mode;
  sandbox?: SandboxHeight | undefined;
  approvals?: ApprovalMode | undefined;
}

/** The settings of a mode; without one, of the global mode. */
export function protectionOf(settings: ProtectionSettings, mode: Mode = settings.mode): Protection {
  const { sandbox, approvals } = MADE_OF[mode];
  return { sandbox: settings.sandbox ?? sandbox, approvals: settings.approvals ?? approvals };
}

/** The stricter of two modes. */
export function stricterMode(all: Mode, own: Mode | undefined): Mode {
  return own !== undefined && Mode.options.indexOf(own) < Mode.options.indexOf(all) ? own : all;
}

/** The stricter of two sandbox heights. */
export function higherWall(all: SandboxHeight, own: SandboxHeight | undefined): SandboxHeight {
  return later(SandboxHeight.options, all, own);
}

/** The setting that asks a person more often. */
export function moreApprovals(all: ApprovalMode, own: ApprovalMode | undefined): ApprovalMode {
  return later(ApprovalMode.options, all, own);
}

/** Applies a squad's own settings. Each part can only tighten the global ones. */
export function squadProtection({ mode, sandbox, approvals }: SquadSafety): Partial<Protection> {
  if (mode === undefined) return { ...(sandbox && { sandbox }), ...(approvals && { approvals }) };
  const made = MADE_OF[mode];
  return { sandbox: higherWall(made.sandbox, sandbox), approvals: moreApprovals(made.approvals, approvals) };
}

/** For work that serves two squads: the stricter of each setting. */
export function stricterSafety(one: SquadSafety, other: SquadSafety): SquadSafety {
  const mode = one.mode === undefined ? other.mode : stricterMode(one.mode, other.mode);
  const sandbox = one.sandbox === undefined ? other.sandbox : higherWall(one.sandbox, other.sandbox);
  const approvals = one.approvals === undefined ? other.approvals : moreApprovals(one.approvals, other.approvals);
  return { ...one, ...(mode && { mode }), ...(sandbox && { sandbox }), ...(approvals && { approvals }) };
}

/** The mode set by the environment for this start. */
export function modeFrom(env: NodeJS.ProcessEnv): { mode?: Mode } {
  const given = env.IO_MODE;
  if (given === undefined || given === "") return {};
  const read = Mode.safeParse(given);
  if (read.success) return { mode: read.data };
  throw usageError(`IO_MODE: ${JSON.stringify(given.slice(0, 40))} is no mode. Allowed: ${Mode.options.join(", ")}.`);
}

function later<T extends string>(options: readonly T[], all: T, own: T | undefined): T {
  return own !== undefined && options.indexOf(own) > options.indexOf(all) ? own : all;
}
