import type { Log } from "../lib/log.ts";
import type { Redactor } from "../lib/redact.ts";
import type { EngineTool, ToolInvocation } from "../protocol/turns.ts";
import type { Store } from "../store/open.ts";
import { createToolCalls, type NewToolCall, type ToolCalls } from "../store/tool-calls.ts";
import { createAudit } from "./audit.ts";
import { type Answer, perform } from "./perform.ts";
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
  now?: () => Date;
  /** How many characters of a result, and of the arguments, the journal keeps. */
  keep?: number;
  /** How long a tool that was told to stop may take to do so before it is no longer waited for. */
  graceMs?: number;
}

/** The one place every tool call passes. */
export interface Gate {
  bind(tools: readonly Tool[], scope: ToolScope): EngineTool[];
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
  const { store, redactor, log, policy, now = () => new Date(), keep = 20_000, graceMs = 1_500 } = deps;
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
    const earlier = findEarlier(journal, call, invocation);

    const refusal = parsed.success ? policy(tool, parsed.data, scope) : explainArguments(tool.name, parsed.error, schema, raw);
    if (refusal !== undefined || !parsed.success) {
      const answer = { ok: false, text: redactor.clean(refusal ?? "") };
      if (!earlier) journal.end(journal.begin({ ...call, state: "refused" }), kind, audit.outcome("refused", answer.text, 0));
      return answer;
    }
    const replayed = replay(journal, call, earlier, invocation, audit);
    if (replayed) return replayed;

    if (earlier) journal.carryOver(earlier, attempt, "begun");
    const seq = earlier?.seq ?? journal.begin(call);
    const started = performance.now();
    const { state, answer } = await perform({ tool, args: parsed.data, kind, scope, invocation }, { redactor, log, graceMs });
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
        return { name, description, parameters, call: (args, invocation) => passOnce({ tool, schema, scope }, args, invocation) };
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
