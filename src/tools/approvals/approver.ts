import type { Log } from "../../lib/log.ts";
import type { ApprovalMode, ApprovalRule } from "../../lib/safety-config.ts";
import { visibleLine } from "../../lib/visible.ts";
import type { Approval } from "../../protocol/approvals.ts";
import type { PathGuard } from "../guard.ts";
import { type Call, whatPrevents } from "../perform.ts";
import type { ToolScope } from "../tool.ts";
import type { Approvals, Verdict } from "./approvals.ts";
import { isAllowedBy, ruleFor } from "./rules.ts";
import { offersFor, type Wants, wantsOf } from "./wants.ts";

export interface ApproverDeps {
  approvals: Pick<Approvals, "ask" | "use" | "rules">;
  guard: PathGuard;
  config: () => { approvals: ApprovalMode; approvalRules: readonly ApprovalRule[] };
  /** Takes secrets out of a text. */
  clean: (text: string) => string;
  log: Log;
}

/** How a call goes on: with what was shown to a person, or not at all. */
export type Leave =
  | {
      args: Record<string, unknown>;
      scope: ToolScope;
      /** To be called in the transaction that begins the call. */
      use?: () => void;
    }
  | { refusal: string }
  /** Nobody has answered, and the question waits on: the turn is over for this process. */
  | { unanswered: string };

/** Decides which calls a person is asked about, and asks. Answers at once where nobody has to be asked. */
export type Approver = (call: Call) => Leave | Promise<Leave>;

const HEIGHT: Record<ApprovalMode, number> = { none: 0, wall: 1, effects: 2 };
const REASON = 400;

export function createApprover({ approvals, guard, config, clean, log }: ApproverDeps): Approver {
  const modeOf = ({ approvals: own = "none" }: ToolScope): ApprovalMode => {
    const { approvals: general } = config();
    return HEIGHT[own] > HEIGHT[general] ? own : general;
  };

  /** Why a person is to be asked about a call, or that it need not be, or why it may not be made. */
  function judge(call: Call, wants: Wants): { ask: string } | { allowed: true } | { denied: string } {
    const { kind, scope, invocation } = call;
    const mode = modeOf(scope);
    const hit = ruleFor(wants.subject, config().approvalRules);
    const named = hit && `approvalRules.${hit.index} (${hit.rule.tool} "${hit.rule.match}": ${hit.rule.then})`;
    if (hit?.rule.then === "deny") return { denied: `a rule of the user's does not permit it: ${named}` };
    const past = mode === "none" ? undefined : wants.past;
    if (past === undefined || wants.ruleReaches) {
      if (hit?.rule.then === "allow" || isKept(wants, scope, invocation.owner)) return { allowed: true };
    }
    if (past !== undefined) return { ask: `${mode}: ${past}` };
    if (hit?.rule.then === "ask") return { ask: named! };
    return mode === "effects" && kind === "effect" ? { ask: "effects: every effect is asked about" } : { allowed: true };
  }

  /** Whether a person has allowed it for the whole task or project. */
  function isKept(wants: Wants, scope: ToolScope, owner: string): boolean {
    const { tool } = wants.subject;
    const kept = approvals.rules.holding({ owner, project: projectOf(scope), tool });
    return kept.length > 0 && isAllowedBy(wants.subject, kept);
  }

  /** It goes exactly where it was judged to go. Without a mode nobody is asked about the wall, and it stands. */
  const granted = ({ scope }: Call, { args, within }: Wants, use?: () => void): Leave => ({
    args,
    scope: within === undefined || modeOf(scope) === "none" ? scope : { ...scope, within },
    ...(use && { use }),
  });

  async function askPerson(call: Call, wants: Wants, rule: string): Promise<Verdict | { refusal: string }> {
    const { tool, scope, invocation } = call;
    const { owner, attempt, signal, pause, lastWords } = invocation;
    const prevented = await whatPrevents({ ...call, kind: "effect" }, log);
    if (prevented !== undefined) return { refusal: `${tool.name} was not started: ${prevented}` };
    const goOn = pause?.();
    try {
      const { summary, command, path, diff, cwd } = wants;
      const project = projectOf(scope);
      // A rule that held a secret would have to be kept and shown.
      const offers = offersFor(wants, owner, project).filter(({ match = "" }) => clean(match) === match);
      return await approvals.ask({
        kind: "call",
        ...{ owner, attempt, signal, actor: scope.actor, tool: tool.name, args: call.args },
        ...{ summary, command, path, cwd, rule, project, scopes: offers },
        diff: await diff?.(),
        reason: reasonOf(call.args, lastWords?.() ?? ""),
      });
    } finally {
      goOn?.();
    }
  }

  async function decided(call: Call, wants: Wants, rule: string): Promise<Leave> {
    const verdict = await askPerson(call, wants, rule);
    if ("refusal" in verdict) return verdict;
    if (verdict.state === "allowed") return granted(call, wants, () => approvals.use(verdict.approval.id));
    const text = words(call.tool.name, verdict);
    return verdict.state === "let go" ? { unanswered: text } : { refusal: text };
  }

  return (call) => {
    const { tool, args, scope } = call;
    if (modeOf(scope) === "none" && config().approvalRules.length === 0) return { args, scope };
    const wants = wantsOf(tool, args, scope, guard);
    // The tool itself says why it is not to be had.
    if (!wants) return { args, scope };
    const judged = judge(call, wants);
    if ("denied" in judged) return { refusal: `${tool.name} was not run: ${judged.denied}. Tell the user if it is needed.` };
    return "allowed" in judged ? granted(call, wants) : decided(call, wants, judged.ask);
  };
}

function projectOf({ cwd, project }: ToolScope): string {
  return project ?? cwd;
}

/** The model's own words: an argument it was given for that, or what it said before the call. */
function reasonOf({ reason }: Record<string, unknown>, said: string): string | undefined {
  const words = visibleLine(typeof reason === "string" ? reason : said, REASON);
  return words === "" ? undefined : words;
}

/** What the model is told when it may not. */
function words(tool: string, { state, approval }: { state: Verdict["state"]; approval: Approval }): string {
  const note = approval.note ? ` The person says: ${JSON.stringify(approval.note)}` : "";
  switch (state) {
    case "denied":
      return `${tool} was not run: a person was asked and denied it.${note} Do not try the same in another way; go on without it, or say what you would need.`;
    case "expired":
      return `${tool} was not run: a person was asked and nobody answered in time, which counts as a denial. Go on without it, and tell the user what was left undone.`;
    default:
      return `${tool} was not run: the question to a person was withdrawn.`;
  }
}
