import { hasRoom, whenRoom } from "../lib/disk-room.ts";
import { valueTrouble } from "../lib/input-budget.ts";
import type { Log } from "../lib/log.ts";
import type { Redactor } from "../lib/redact.ts";
import { callSummary } from "../protocol/call-summary.ts";
import { exitCodeIn } from "../protocol/shown-state.ts";
import type { CallAnswer, EngineTool, ToolInvocation } from "../protocol/turns.ts";
import { isDiskFull } from "../store/faults.ts";
import type { Store } from "../store/open.ts";
import { createToolCalls, type NewToolCall, type ToolCall, type ToolCalls } from "../store/tool-calls.ts";
import type { Approver, Leave } from "./approvals/approver.ts";
import { createAudit } from "./audit.ts";
import { type Call, perform } from "./perform.ts";
import { findEarlier, replay, tellEarlier } from "./replay.ts";
import { explainArguments, parametersOf } from "./schema.ts";
import type { Tool, ToolScope, Writes } from "./tool.ts";

/** Longer arguments are told in a line and not whole; the journal has them. */
const LONGEST_INPUT = 4_000;

/** Says why a call may not be made, or nothing. */
export type Policy = (tool: Tool, args: Record<string, unknown>, scope: ToolScope) => string | undefined;

export interface GateDeps {
  store: Store;
  redactor: Redactor;
  log: Log;
  policy: Policy;
  /** Asks a person about the calls that need one; without it none does. */
  approver?: Approver;
  /** Keeps what an effect may change as it was before, and is told when the effect has ended. Never rejects. */
  beforeEffect?: (owner: string, writes: Writes, scope: ToolScope) => Promise<() => void>;
  /** The data folder: while its disk is full no call is begun. */
  folder?: string;
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
  const { store, redactor, log, policy, approver, folder, now = () => new Date(), keep = 20_000, graceMs = 1_500 } = deps;
  const journal = createToolCalls(store);
  const audit = createAudit(redactor, keep);
  const running = new Map<string, Promise<CallAnswer>>();
  const shapeOf = createShapes();
  const lasting = createLasting();

  async function pass({ tool, schema, scope }: Bound, given: unknown, invocation: ToolInvocation): Promise<CallAnswer> {
    const excess = valueTrouble(given);
    const raw = excess === undefined ? (given ?? {}) : {};
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
    const input = call.args.length <= LONGEST_INPUT ? { input: call.args } : {};
    invocation.report?.({ args: callSummary(tool.name, call.args), ...input });
    const before = findEarlier(journal, call, invocation);

    const refuse = (text: string, earlier: ToolCall | undefined): CallAnswer => {
      const answer = { ok: false, state: "refused" as const, text: redactor.clean(text) };
      if (!earlier) journal.end(journal.begin({ ...call, state: "refused" }), kind, audit.outcome("refused", answer.text, 0));
      return answer;
    };
    if (excess !== undefined) return refuse(`${tool.name} was not run: what it was called with ${excess}. Send less.`, before);
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
    const made: Call = { ...wanted, args: leave.args, scope: leave.scope };
    const ended = await keptBefore(made, deps.beforeEffect);
    const started = performance.now();
    const { state, answer, lasts } = await perform(made, { redactor, log, graceMs });
    if (ended) lasts ? lasting.add(owner, lasts, ended) : ended();
    try {
      journal.end(seq, kind, audit.outcome(state, answer.text, performance.now() - started));
    } catch (error) {
      log.error("a tool's result could not be recorded", { tool: tool.name, owner, error });
    }
    return state === "refused" || state === "unknown" ? { ...answer, state } : answer;
  }

  /** What could not be recorded would not be run: the call waits, and the turn's clock with it. */
  async function passWithRoom(bound: Bound, args: unknown, invocation: ToolInvocation): Promise<CallAnswer> {
    if (folder !== undefined && !hasRoom(folder)) {
      const goOn = invocation.pause?.();
      await whenRoom(folder, invocation.signal);
      goOn?.();
    }
    return pass(bound, args, invocation);
  }

  /** A call that is already under way is not made twice. */
  function passOnce(bound: Bound, args: unknown, invocation: ToolInvocation): Promise<CallAnswer> {
    const { name } = bound.tool;
    const key = JSON.stringify([invocation.sessionId, invocation.callId, invocation.attempt, name]);
    const live = running.get(key);
    if (live) return live;
    const answer = passWithRoom(bound, args, invocation)
      .then((told) => {
        const exitCode = name === "shell" ? exitCodeIn(told.text) : undefined;
        if (exitCode !== undefined) invocation.report?.({ exitCode });
        return told;
      })
      .catch((error: unknown) => {
        log.error("a tool call could not pass the gate", { tool: name, owner: invocation.owner, error });
        const why = isDiskFull(error) ? "because the disk is full" : "because of a fault inside IO";
        return { ok: false, state: "refused" as const, text: `${name} was not run: the call could not be recorded, ${why}.` };
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
          ...{ name, description, parameters, ...(tool.server !== undefined && { optional: true as const }) },
          call: (args, invocation) => passOnce({ tool, schema, scope: scopeFor(invocation.owner) }, args, invocation),
          earlier: ({ owner, attempt, sessionId, settled }) =>
            tellEarlier(journal, { owner, attempt, sessionId, tool: name }, settled, audit),
          turnEnded: (owner) => lasting.end(owner, tool.turnEnded?.(owner)),
        };
      }),
    callsOf: journal.callsOf,
    effectsOf: journal.effectsOf,
  };
}

/** What a call may change in the folders of this host is kept first. */
async function keptBefore({ tool, args, kind, scope, invocation }: Call, keep: GateDeps["beforeEffect"]) {
  const isElsewhere = tool.onHost && invocation.elsewhere !== undefined;
  if (!keep || !tool.writes || kind !== "effect" || isElsewhere || invocation.signal.aborted) return undefined;
  return keep(invocation.owner, tool.writes(args), scope);
}

/** Effects that go on after their calls: what they change is their turn's until they end, or the turn does. */
function createLasting() {
  const open = new Map<string, Set<() => void>>();
  return {
    add(owner: string, until: Promise<void>, ended: () => void): void {
      const ends = open.get(owner) ?? new Set();
      open.set(owner, ends);
      ends.add(ended);
      void until.then(() => {
        if (ends.delete(ended)) ended();
      });
    },
    async end(owner: string, stopped: Promise<void> | undefined): Promise<void> {
      await stopped;
      for (const ended of open.get(owner) ?? []) ended();
      open.get(owner)?.clear();
      open.delete(owner);
    },
  };
}

/** Tools are bound anew for every agent; what their schemas come to is worked out once. */
function createShapes() {
  const shapes = new WeakMap<Tool["schema"], { strict: Tool["schema"]; parameters: Record<string, unknown> }>();
  return ({ schema, parameters }: Tool) => {
    const made = () =>
      parameters ? { strict: schema, parameters } : { strict: schema.strict(), parameters: parametersOf(schema) };
    const known = shapes.get(schema) ?? made();
    shapes.set(schema, known);
    return known;
  };
}
