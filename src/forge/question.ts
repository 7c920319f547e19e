import { moreApprovals, type ProtectionSettings, protectionOf, squadProtection, stricterMode } from "../home/modes.ts";
import type { ApprovalRule, SquadSafety } from "../home/safety-config.ts";
import type { Approvals } from "../tools/approvals/approvals.ts";
import { isAllowedBy, ruleFor } from "../tools/approvals/rules.ts";

/** The tool name by which rules and approvals refer to pushing and opening a pull request. */
export const TOOL = "pull_request";

export interface QuestionDeps {
  approvals: Pick<Approvals, "ask" | "use" | "waiting" | "rules">;
  config: () => ProtectionSettings & { approvalRules: readonly ApprovalRule[] };
  /** The safety settings of the squad that owns this project. */
  safetyOf: (projectPath: string) => SquadSafety;
  /** Whether a watch started this run: whoever set up the watch has already agreed to the pull request. */
  isWatched: (owner: string) => boolean;
}

/** What leaves this machine. */
export interface Outgoing {
  /** The ID of the run or task. */
  owner: string;
  projectPath: string;
  host: string;
  repo: string;
  headRepo: string;
  branch: string;
  base: string;
  commit: string;
  round: number;
  files: string;
}

export type Answer = { allowed: true; use?: () => void } | { denied: string };

/**
 * Asks a person before anything is pushed, if the mode or a rule requires it. Returns undefined if IO is shutting down; the
 * question then stays open.
 */
export function createPublishQuestion({ approvals, config, safetyOf, isWatched }: QuestionDeps) {
  /** Decides without a person, or returns why to ask one. */
  function judge({ owner, projectPath, host, repo }: Outgoing): Answer | { ask: string } {
    const settings = config();
    const own = safetyOf(projectPath);
    const mode = stricterMode(settings.mode, own.mode);
    if (mode === "plan")
      return { denied: 'in the mode "plan" nothing is pushed. Another one is chosen with "io config set mode".' };
    const subject = { tool: TOOL, names: [`${host}/${repo}`], spelled: [`${host}/${repo}`] };
    const hit = ruleFor(subject, settings.approvalRules);
    const named = hit && `approvalRules.${hit.index} (${hit.rule.tool} "${hit.rule.match}": ${hit.rule.then})`;
    if (hit?.rule.then === "deny") return { denied: `a rule does not permit it: ${named}` };
    if (hit?.rule.then === "allow") return { allowed: true };
    const kept = approvals.rules.holding({ owner, project: projectPath, tool: TOOL });
    if (kept.length > 0 && isAllowedBy(subject, kept)) return { allowed: true };
    if (hit) return { ask: named! };
    if (isWatched(owner)) return { allowed: true };
    const when = moreApprovals(protectionOf(settings).approvals, squadProtection(own).approvals);
    return when === "none" ? { allowed: true } : { ask: `${when}: it leaves this machine` };
  }

  return async (
    outgoing: Outgoing,
    { signal, onAsked }: { signal: AbortSignal; onAsked: (approval: string) => void },
  ): Promise<Answer | undefined> => {
    const judged = judge(outgoing);
    if (!("ask" in judged)) return judged;
    const { owner, projectPath, files, ...what } = outgoing;
    const { host, repo, branch, base, commit } = what;
    const asking = approvals.ask({
      ...{ kind: "call", owner, actor: "io", tool: TOOL, args: what, signal, rule: judged.ask },
      summary: `push ${branch} (${commit.slice(0, 12)}) to ${host}/${repo} and open a pull request into ${base}`,
      ...{ cwd: projectPath, project: projectPath, diff: files },
      scopes: [{ scope: "project", rule: `pull requests to ${host}/${repo} from this project`, match: `${host}/${repo}` }],
    });
    const waiting = approvals.waiting().find((each) => each.owner.id === owner && each.tool === TOOL);
    if (waiting) onAsked(waiting.id);
    const { state, approval } = await asking;
    if (state === "let go") return undefined;
    if (state === "allowed") return { allowed: true, use: () => approvals.use(approval.id) };
    const note = approval.note ? `: ${approval.note}` : "";
    return { denied: state === "denied" ? `a person said no${note}` : `nobody answered in time${note}` };
  };
}
export type PublishQuestion = ReturnType<typeof createPublishQuestion>;
