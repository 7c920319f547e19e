import { moreApprovals, type ProtectionSettings, protectionOf, stricterMode } from "../../home/modes.ts";
import type { ApprovalMode, ApprovalRule } from "../../home/safety-config.ts";
import type { Log } from "../../lib/log.ts";
import type { FileIdentity } from "../../lib/pinned/identity.ts";
import type { Sandbox } from "../../process/sandbox.ts";
import type { Approval, ScopeOffer } from "../../protocol/approvals.ts";
import { LONGEST_CALL_MS } from "../../protocol/turns.ts";
import { identityOf, placesOf, whatChanged } from "../call-targets.ts";
import type { PathGuard } from "../guard.ts";
import { type Call, whatPrevents } from "../perform.ts";
import { terminalFor } from "../terminal-shell.ts";
import type { ToolScope } from "../tool.ts";
import type { Approvals, Verdict } from "./approvals.ts";
import { isAllowedBy, ruleFor, whyNotAllowed } from "./rules.ts";
import { createShow, type Show } from "./show.ts";
import { offersFor, type Wants, wantsOf } from "./wants.ts";

export interface ApproverDeps {
  approvals: Pick<Approvals, "ask" | "use" | "rules">;
  guard: PathGuard;
  config: () => ProtectionSettings & { approvalRules: readonly ApprovalRule[] };
  sandbox: Pick<Sandbox, "status" | "height">;
  /** Masks secrets in a text that is shown to a person. */
  mark: (text: string) => string;
  log: Log;
}

/** Whether a call may be made, and with which arguments. */
export type CallDecision =
  | {
      args: Record<string, unknown>;
      scope: ToolScope;
      /** Marks the answer as used; to be called in the transaction that starts the call. */
      use?: () => void;
    }
  | { refusal: string }
  /** Nobody has answered; the question stays open and the turn ends for this process. */
  | { unanswered: string };

/** Decides which calls need a person's approval, and asks for it. Synchronous if nobody has to be asked. */
export type Approver = (call: Call) => CallDecision | Promise<CallDecision>;

/** Why a call is allowed: by a rule, or by an answer that is used up by this call. */
interface Grounds {
  byRule?: true;
  use?: () => void;
}

const REASON = 400;

export function createApprover({ approvals, guard, config, sandbox, mark, log }: ApproverDeps): Approver {
  const show = createShow(mark);
  const modeOf = (scope: ToolScope) => approvalsIn(scope, config());
  /** Whether a call is allowed, denied by a rule, or needs a person, and why. */
  function judge(call: Call, wants: Wants): { ask: string } | { allowed: true; byRule?: true } | { denied: string } {
    const { kind, scope, invocation } = call;
    const mode = modeOf(scope);
    const hit = ruleFor(wants.subject, config().approvalRules);
    const named = hit && `approvalRules.${hit.index} (${hit.rule.tool} "${hit.rule.match}": ${hit.rule.then})`;
    if (hit?.rule.then === "deny" && hit.isCertain) return { denied: `a rule of the user's does not permit it: ${named}` };
    const past = mode === "none" ? undefined : wants.past;
    if (past === undefined || wants.ruleReaches) {
      if (hit?.rule.then === "allow" || isKept(approvals, wants, scope, invocation.owner)) return { allowed: true, byRule: true };
    }
    if (past !== undefined) return { ask: `${mode}: ${past}` };
    if (hit?.rule.then === "ask" && hit.isCertain) return { ask: named! };
    if (hit) return { ask: `${named}, which may fit: the command line is not plain enough to tell` };
    if (mode !== "effects" || kind !== "effect") return { allowed: true };
    const unused = whyNotAllowed(wants.subject, config().approvalRules);
    return { ask: `effects: every effect is asked about${unused ? ` (${unused})` : ""}` };
  }

  /** Allows the call for exactly what was judged. Without approvals nobody can let it past the sandbox. */
  const granted = (call: Call, { args, within, outside }: Wants, places: readonly FileIdentity[], how: Grounds): CallDecision => {
    const { scope } = call;
    const mayLeave = outside === true && modeOf(scope) !== "none";
    const whyNot = (others: Record<string, unknown>) => whyNotAlso({ ...call, args: others });
    return {
      args,
      scope: {
        ...scope,
        ...(within !== undefined && modeOf(scope) !== "none" && { within }),
        ...{ whyNot, approved: places },
        ...(how.byRule && { byRule: true }),
        ...(mayLeave && { profile: { ...scope.profile, outside: true } }),
      },
      ...(how.use && { use: how.use }),
    };
  };

  /** An answer is good for one call. Other arguments are judged anew, and nobody is asked in the middle of a call. */
  function whyNotAlso(call: Call): string | undefined {
    const wants = wantsOf(call.tool, call.args, call.scope, { guard, show });
    const judged = wants && judge(call, wants);
    if (!judged || "allowed" in judged) return undefined;
    return "denied" in judged ? judged.denied : "a person has to be asked about that address first";
  }

  async function askPerson(
    call: Call,
    wants: Wants,
    places: readonly FileIdentity[],
    rule: string,
  ): Promise<Verdict | { refusal: string }> {
    const { tool, scope, invocation } = call;
    const { owner, attempt, signal, pause, lastWords } = invocation;
    const prevented = await whatPrevents({ ...call, kind: "effect" }, log);
    if (prevented !== undefined) return { refusal: `${tool.name} was not started: ${prevented}` };
    const goOn = pause?.();
    try {
      const { summary, command, path, diff, cwd } = wants;
      const project = projectOf(scope);
      const offers = offersFor(wants, { owner, project, show }).filter((offer) => canBeKept(offer, scope, mark));
      return await approvals.ask({
        ...{ kind: "call", withinMs: LONGEST_CALL_MS },
        ...{ owner, attempt, signal, actor: scope.actor, tool: tool.name, args: call.args, places: identityOf(places) },
        ...{ summary, command, path, cwd, rule, project, scopes: offers },
        diff: await diff?.(),
        reason: reasonOf(call.args, lastWords?.() ?? "", show),
      });
    } finally {
      goOn?.();
    }
  }

  async function askAndDecide(call: Call, wants: Wants, places: readonly FileIdentity[], rule: string): Promise<CallDecision> {
    const verdict = await askPerson(call, wants, places, rule);
    if ("refusal" in verdict) return verdict;
    const use = () => approvals.use(verdict.approval.id);
    if (verdict.state === "allowed") {
      const changed = whatChanged(call.tool.name, places);
      if (changed === undefined) return granted(call, wants, places, { use });
      // The answer was for the files as they were, and is used up.
      use();
      return { refusal: changed };
    }
    const text = words(call.tool.name, verdict);
    return verdict.state === "let go" ? { unanswered: text } : { refusal: text };
  }

  function decide(call: Call, isUnwalled: boolean): CallDecision | Promise<CallDecision> {
    const { tool, args, scope } = call;
    const elsewhere = tool.onHost ? call.invocation.elsewhere : undefined;
    const how = { isUnwalled, inTerminal: isForTerminal(call), worker: elsewhere?.worker };
    const wants = wantsOf(tool, args, scope, { guard, show, ...how });
    // The tool itself refuses the call, with the reason.
    if (!wants) return { args, scope };
    const places = placesOf(tool.name, wants.args, scope, guard);
    if (elsewhere && tool.name === "file_ops" && wants.past !== undefined && modeOf(scope) !== "none")
      return { refusal: ON_WORKER };
    const judged = judge(call, wants);
    if ("denied" in judged) return { refusal: `${tool.name} was not run: ${judged.denied}. Tell the user if it is needed.` };
    return "allowed" in judged ? granted(call, wants, places, judged) : askAndDecide(call, wants, places, judged.ask);
  }

  return (call) => {
    const { tool, args, kind, scope } = call;
    if (kind === "effect" && isPlan(scope, config())) return { refusal: `${tool.name} was not run: ${PLAN}` };
    if (modeOf(scope) === "none" && config().approvalRules.length === 0) return { args, scope };
    if (tool.name !== "shell" || sandbox.height({ mode: scope.mode, ...scope.profile }) !== "project") return decide(call, false);
    if (call.invocation.elsewhere) return decide(call, !call.invocation.elsewhere.isSandboxed);
    if (isForTerminal(call)) return decide(call, true);
    return sandbox.status().then(({ kind: found }) => decide(call, found === "open"));
  };
}

/** Whether a person has allowed such calls for the whole task or project. */
function isKept({ rules }: ApproverDeps["approvals"], { subject }: Wants, scope: ToolScope, owner: string): boolean {
  const kept = rules.holding({ owner, project: projectOf(scope), tool: subject.tool });
  return kept.length > 0 && isAllowedBy(subject, kept);
}

/** Whether a command would run in the terminal of the user's editor if it may leave the sandbox. */
function isForTerminal({ tool, args, scope, invocation }: Call): boolean {
  return tool.name === "shell" && !invocation.elsewhere && terminalFor(args, scope) !== undefined;
}

/** When to ask a person about calls in this scope. */
function approvalsIn({ mode, approvals }: ToolScope, config: ProtectionSettings): ApprovalMode {
  return moreApprovals(protectionOf(config, mode).approvals, approvals);
}

function isPlan({ mode, strictest }: ToolScope, config: ProtectionSettings): boolean {
  return (mode ?? stricterMode(config.mode, strictest)) === "plan";
}

/** A worker allows no path outside its job's folder, whatever a person says. */
const ON_WORKER =
  "file_ops was not run: this work is done on another host, where files are read and written in the project alone. Use a path in the project.";
const PLAN =
  'in the mode "plan" nothing is changed. Say what you would do; the user can choose another mode with /mode or "io config set mode".';

/** No rule is kept that contains a secret, or for a worktree, which is temporary. */
function canBeKept({ scope, match = "" }: ScopeOffer, place: ToolScope, mark: ApproverDeps["mark"]): boolean {
  return mark(match) === match && (scope !== "project" || place.project !== undefined || place.within === undefined);
}

function projectOf({ cwd, project }: ToolScope): string {
  return project ?? cwd;
}

/** The model's reason: the argument for it, or what it said before the call. */
function reasonOf({ reason }: Record<string, unknown>, said: string, show: Show): string | undefined {
  const words = show.line(typeof reason === "string" ? reason : said, REASON);
  return words === "" ? undefined : words;
}

/** What the model is told when a call was not allowed. */
function words(tool: string, { state, approval }: { state: Verdict["state"]; approval: Approval }): string {
  const note = approval.note ? ` The person says: ${JSON.stringify(approval.note)}` : "";
  switch (state) {
    case "denied":
      return `${tool} was not run: a person was asked and denied it.${note} Do not try the same in another way; go on without it, or say what you would need.`;
    case "expired":
      return `${tool} was not run: a person was asked and nobody answered in time: the question has expired, which counts as a denial. Go on without it, and tell the user what was left undone.`;
    default:
      return `${tool} was not run: the question to a person was withdrawn.`;
  }
}
