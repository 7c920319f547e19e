import { homedir } from "node:os";
import { firstTry } from "../../engine/sessions/attempt.ts";
import { higherWall } from "../../home/modes.ts";
import { privatePlacesAndTargets } from "../../home/private-places.ts";
import { locate, realOf } from "../../lib/real-path.ts";
import { isWithin } from "../../lib/within.ts";
import type { SandboxProfile } from "../../process/sandbox.ts";
import type { CallAnswer, EngineTool, ToolInvocation } from "../../protocol/turns.ts";
import type { Gate } from "../../tools/gate.ts";
import type { Tool } from "../../tools/tool.ts";
import type { JobAttempt } from "../jobs/port.ts";
import { ANSWERS, type Held, type TurnSpec } from "./job-messages.ts";
import type { JobPlace } from "./projects.ts";

export interface HostToolsDeps {
  gate: Gate;
  tools: readonly Tool[];
  /** The tools as the daemon described them. */
  sent: TurnSpec["tools"];
  owner: string;
  place: JobPlace;
  jobAttempt: JobAttempt;
  /** Whether a person at the daemon may let a command out of this host's sandbox. */
  mayLeave: () => boolean;
}

const KEPT =
  "file_ops was not run: keys or passwords are kept there, and on a worker nobody can allow that. Do without it, or tell the user.";
const STOP = { ok: false, text: "This work was taken over by another worker, or stopped. Stop." };

/**
 * The tools of a turn on a worker. Each call first goes to the daemon, which checks it, asks for approval and records it; a call
 * that runs here then also passes this host's own gate and sandbox.
 */
export function createHostTools({ gate, tools, sent, owner, place, jobAttempt, mayLeave }: HostToolsDeps): EngineTool[] {
  const { cwd, sandboxProfile, names } = place;
  const bound = (profile: SandboxProfile) => gate.bind(tools, { cwd, actor: owner, within: cwd, profile });
  const here = bound(sandboxProfile);

  /** The tool in the sandbox that the daemon wants for one call; by default the job's own. */
  function heldAs(tool: string, held: Held | undefined): EngineTool | undefined {
    const isFreed = held?.outside === true && mayLeave();
    const asTold =
      held &&
      bound({ ...sandboxProfile, height: higherWall(held.height, sandboxProfile.height), ...(isFreed && { outside: true }) });
    return (asTold ?? here).find(({ name }) => name === tool);
  }

  /** Whether a call touches this host's secrets. Nobody could approve that: the daemon's host keeps its secrets elsewhere. */
  function isPrivate(tool: string, args: Record<string, unknown>, held: Held | undefined): boolean {
    if (tool !== "file_ops" || typeof args.path !== "string" || (held?.height ?? sandboxProfile.height) === "secrets")
      return false;
    const real = realOf(locate(args.path, cwd));
    return privatePlacesAndTargets(homedir()).some((place) => isWithin(place, real));
  }

  /** Pauses the turn's clock while the daemon works on a question. */
  async function ask(invocation: ToolInvocation, wanted: object): Promise<unknown> {
    const goOn = invocation.pause?.();
    try {
      return await jobAttempt.ask(wanted);
    } finally {
      goOn?.();
    }
  }

  async function call(tool: string, args: unknown, invocation: ToolInvocation): Promise<CallAnswer> {
    const { callId, sessionId, settled } = invocation;
    const said = invocation.lastWords?.() ?? "";
    const tried = Math.max(0, invocation.attempt - firstTry(jobAttempt.attempt));
    const { beforeTurn, total } = settled?.(callId, sessionId) ?? { beforeTurn: 0, total: 0 };
    const wanted = { kind: "call", call: callId, tool, args: args ?? {}, said, tried, answered: total - beforeTurn };
    const asked = ANSWERS.call.parse(await ask(invocation, wanted));
    if ("answer" in asked) return asked.answer;
    const own = heldAs(tool, asked.held);
    const given = names.args(asked.do);
    const isKept = isPrivate(tool, given, asked.held);
    const done = isKept
      ? { ok: false, text: KEPT }
      : own
        ? await own.call(given, invocation)
        : { ok: false, text: `This worker has no ${tool}.` };
    const refused = isKept || (!done.ok && gate.callsOf(owner).findLast((each) => each.callId === callId)?.state === "refused");
    const outcome = { kind: "outcome", call: callId, ok: done.ok, refused, text: names.text(done.text) };
    return ANSWERS.outcome.parse(await ask(invocation, outcome));
  }

  return sent.map((tool) => ({
    ...tool,
    call: (args, invocation) => call(tool.name, args, invocation).catch(() => STOP),
    turnEnded: async (whose) => await here.find(({ name }) => name === tool.name)?.turnEnded?.(whose),
  }));
}
