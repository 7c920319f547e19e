import type { Life } from "../dispatch/port.ts";
import type { EngineTool, ToolInvocation } from "../protocol/turns.ts";
import type { Gate } from "../tools/gate.ts";
import type { Tool } from "../tools/tool.ts";
import type { JobPlace } from "./projects.ts";
import { ANSWERS, type TurnSpec } from "./words.ts";

export interface HostToolsDeps {
  gate: Gate;
  tools: readonly Tool[];
  /** The tools as the daemon has them. */
  sent: TurnSpec["tools"];
  owner: string;
  place: JobPlace;
  life: Life;
}

const STOP = { ok: false, text: "This work was taken over by another worker, or stopped. Stop." };

/**
 * The tools of a turn on a worker. Every call goes to the daemon first, which judges it, asks whom it has to, and writes it down;
 * what is to be done on this host then passes this host's own gate and wall too.
 */
export function createHostTools({ gate, tools, sent, owner, place, life }: HostToolsDeps): EngineTool[] {
  const { cwd, stand, names } = place;
  const here = gate.bind(tools, { cwd, actor: owner, within: cwd, stand });

  /** While the daemon sees to it, the clock of the turn stands still. */
  async function ask(invocation: ToolInvocation, wanted: object): Promise<unknown> {
    const goOn = invocation.pause?.();
    try {
      return await life.ask(wanted);
    } finally {
      goOn?.();
    }
  }

  async function call(tool: string, args: unknown, invocation: ToolInvocation): Promise<{ ok: boolean; text: string }> {
    const { callId } = invocation;
    const said = invocation.lastWords?.() ?? "";
    const asked = ANSWERS.call.parse(await ask(invocation, { kind: "call", call: callId, tool, args: args ?? {}, said }));
    if ("answer" in asked) return asked.answer;
    const own = here.find(({ name }) => name === tool);
    const done = own ? await own.call(names.args(asked.do), invocation) : { ok: false, text: `This worker has no ${tool}.` };
    const refused = !done.ok && gate.callsOf(owner).findLast((each) => each.callId === callId)?.state === "refused";
    const outcome = { kind: "outcome", call: callId, ok: done.ok, refused, text: names.text(done.text) };
    return ANSWERS.outcome.parse(await ask(invocation, outcome));
  }

  return sent.map((tool) => ({
    ...tool,
    call: (args, invocation) => call(tool.name, args, invocation).catch(() => STOP),
  }));
}
