import type { Log } from "../lib/log.ts";
import type { Redactor } from "../lib/redact.ts";
import type { EngineTool, ToolInvocation } from "../protocol/turns.ts";
import type { Store } from "../store/open.ts";
import { createToolCalls, type NewToolCall, type ToolCall, type ToolCalls } from "../store/tool-calls.ts";
import type { Approver, Leave } from "./approvals/approver.ts";
import { createAudit } from "./audit.ts";
import { type Answer, type Call, perform } from "./perform.ts";
import { findEarlier, replay } from "./replay.ts";
import { explainArguments, parametersOf } from "./schema.ts";
import type { Tool, ToolScope } from "./tool.ts";

/** Says why a call may not be made, or nothing. */
export type Policy = (tool: Tool, args: Record<string, unknown>, scope: ToolScope) => string | undefined;

export interface GateDeps {
  store: Store;
  redactor: Redactor;
  log: Log;
  policy: Policy;
  /** Asks a person about the calls that need one; without it none does. */
  approver?: Approver;
  now?: () => Date;
  /** How many characters of a result, and of the arguments, the journal keeps. */
  keep?: number;
  /** How long a tool that was told to stop may take to do so before it is no longer waited for. */
  graceMs?: number;
}

/** The one place every tool call passes. */
export interface Gate {
  /** Where the tools stand may depend on the message, task or step they are called for. */
  bind(tools: readonly Tool[], scope: ToolScope | ((owner: string) => ToolScope)): EngineTool[];
  callsOf: ToolCalls["callsOf"];
  effectsOf: ToolCalls["effectsOf"];
}

/** A tool with what its schema comes to. */
interface Bound {
  tool: Tool;
  schema: Tool["schema"];
  scope: ToolScope;
}

export function createGate(deps: GateDeps): Gate {
  const { store, redactor, log, policy, approver, now = () => new Date(), keep = 20_000, graceMs = 1_500 } = deps;
  const journal = createToolCalls(store);
  const audit = createAudit(redactor, keep);
  const running = new Map<string, Promise<Answer>>();
  const shapeOf = createShapes();

  async function pass({ tool, schema, scope }: Bound, given: unknown, invocation: ToolInvocation): Promise<Answer> {
    const raw = given ?? {};
    const parsed = schema.safeParse(raw);
    const kind = !parsed.success ? "read" : typeof tool.kind === "function" ? tool.kind(parsed.data) : tool.kind;
    const { callId, sessionId, owner, attempt } = invocation;
    const call: NewToolCall = {
      ...{ callId, sessionId, owner, attempt, kind },
      ...audit.args(parsed.success ? parsed.data : raw),
      actor: scope.actor,
      tool: tool.name,
      state: "begun",
      createdAt: now().toISOString(),
    };
    const before = findEarlier(journal, call, invocation);

    const refuse = (text: string, earlier: ToolCall | undefined): Answer => {
      const answer = { ok: false, text: redactor.clean(text) };
      if (!earlier) journal.end(journal.begin({ ...call, state: "refused" }), kind, audit.outcome("refused", answer.text, 0));
      return answer;
    };
    if (!parsed.success) return refuse(explainArguments(tool.name, parsed.error, schema, raw), before);
    const refusal = policy(tool, parsed.data, scope);
    if (refusal !== undefined) return refuse(refusal, before);
    const replayed = replay(journal, call, before, invocation, audit);
    if (replayed) return replayed;

    const wanted: Call = { tool, args: parsed.data, kind, scope, invocation };
    const leave: Leave = approver ? await approver(wanted) : wanted;
    // While a person was asked, another call may have taken its id.
    call.callId = callId;
    const earlier = findEarlier(journal, call, invocation);
    if ("unanswered" in leave) return { ok: false, text: leave.unanswered };
    if ("refusal" in leave) return refuse(leave.refusal, earlier);

    const begin = (): number => {
      if (earlier) journal.carryOver(earlier, attempt, "begun");
      return earlier?.seq ?? journal.begin(call);
    };
    const { use } = leave;
    const seq = use
      ? store.transaction(() => {
          use();
          return begin();
        })
      : begin();
    const started = performance.now();
    const { state, answer } = await perform({ ...wanted, args: leave.args, scope: leave.scope }, { redactor, log, graceMs });
    try {
      journal.end(seq, kind, audit.outcome(state, answer.text, performance.now() - started));
    } catch (error) {
      log.error("a tool's result could not be recorded", { tool: tool.name, owner, error });
    }
    return answer;
  }

  /** A call that is already under way is not made twice. */
  function passOnce(bound: Bound, args: unknown, invocation: ToolInvocation): Promise<Answer> {
    const { name } = bound.tool;
    const key = JSON.stringify([invocation.sessionId, invocation.callId, invocation.attempt, name]);
    const live = running.get(key);
    if (live) return live;
    const answer = pass(bound, args, invocation)
      .catch((error: unknown) => {
        log.error("a tool call could not pass the gate", { tool: name, owner: invocation.owner, error });
        return { ok: false, text: `${name} was not run: the call could not be recorded, because of a fault inside IO.` };
      })
      .finally(() => running.delete(key));
    running.set(key, answer);
    return answer;
  }

  return {
    bind: (tools, scope) =>
      tools.map((tool) => {
        const { strict: schema, parameters } = shapeOf(tool);
        const { name, description } = tool;
        const scopeFor = (owner: string) => (typeof scope === "function" ? scope(owner) : scope);
        return {
          name,
          description,
          parameters,
          call: (args, invocation) => passOnce({ tool, schema, scope: scopeFor(invocation.owner) }, args, invocation),
        };
      }),
    callsOf: journal.callsOf,
    effectsOf: journal.effectsOf,
  };
}

/** Tools are bound anew for every agent; what their schemas come to is worked out once. */
function createShapes() {
  const shapes = new WeakMap<Tool["schema"], { strict: Tool["schema"]; parameters: Record<string, unknown> }>();
  return ({ schema }: Tool) => {
    const known = shapes.get(schema) ?? { strict: schema.strict(), parameters: parametersOf(schema) };
    shapes.set(schema, known);
    return known;
  };
}
