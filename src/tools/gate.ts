import { hasRoom, whenRoom } from "../lib/disk-room.ts";
import { valueTrouble } from "../lib/input-budget.ts";
import type { Log } from "../lib/log.ts";
import type { Redactor } from "../lib/redact.ts";
import { callSummary } from "../protocol/call-summary.ts";
import { exitCodeIn } from "../protocol/shown-state.ts";
import type { CallAnswer, EngineTool, ToolInvocation } from "../protocol/turns.ts";
import { isBusy, isDiskFull } from "../store/faults.ts";
import { type Store, whenNotHeld } from "../store/open.ts";
import { createToolCalls, type NewToolCall, type ToolCall, type ToolCalls } from "../store/tool-calls.ts";
import type { Approver, CallDecision } from "./approvals/approver.ts";
import { createAudit } from "./audit.ts";
import { createCallOrder, type OrderedCall } from "./call-order.ts";
import { type Call, perform } from "./perform.ts";
import { earlierEffects, findEarlier, replay } from "./replay.ts";
import { explainArguments, parametersOf } from "./schema.ts";
import type { Tool, ToolScope, Writes } from "./tool.ts";

/** Longer arguments are summarised in events; the journal keeps them whole. */
const LONGEST_INPUT = 4_000;

/** Why a call is not allowed; undefined if it is. */
export type Policy = (tool: Tool, args: Record<string, unknown>, scope: ToolScope) => string | undefined;

export interface GateDeps {
  store: Store;
  redactor: Redactor;
  log: Log;
  policy: Policy;
  /** Asks a person about calls that need approval. If missing, none do. */
  approver?: Approver;
  /** Saves what an effect may change. The function it returns is called when the effect has ended. Never rejects. */
  beforeEffect?: (owner: string, writes: Writes, scope: ToolScope) => Promise<() => void>;
  /** The data folder. No call starts while its disk is full. */
  folder?: string;
  now?: () => Date;
  /** How many characters of a result and of the arguments the journal keeps. */
  keep?: number;
  /** How long to wait for a tool that was told to stop. */
  graceMs?: number;
}

/** Every tool call passes through here. */
export interface Gate {
  /** The scope may depend on the message, task or step that a call belongs to. */
  bind(tools: readonly Tool[], scope: ToolScope | ((owner: string) => ToolScope)): EngineTool[];
  callsOf: ToolCalls["callsOf"];
  effectsOf: ToolCalls["effectsOf"];
}

/** Refuses a call. If an earlier attempt recorded it, that record stays as it is. */
type Refuse = (text: string, earlier: ToolCall | undefined) => CallAnswer;

/** A tool with its compiled schema. */
interface Bound {
  tool: Tool;
  schema: Tool["schema"];
  scope: ToolScope;
}

export function createGate(deps: GateDeps): Gate {
  const { store, redactor, log, policy, approver, now = () => new Date(), keep = 20_000, graceMs = 1_500 } = deps;
  const journal = createToolCalls(store);
  const audit = createAudit(redactor, keep);
  const running = new Map<string, Promise<CallAnswer>>();
  const shapeOf = createShapes();
  const lasting = createLasting();
  const order = createCallOrder();

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

    const refuse: Refuse = (text, earlier) => {
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
    const ordered = order.enter(owner, tool.name === "file_ops" && kind === "effect");
    try {
      return await make(wanted, call, refuse, ordered);
    } finally {
      ordered.release();
    }
  }

  async function make(wanted: Call, call: NewToolCall, refuse: Refuse, ordered: OrderedCall): Promise<CallAnswer> {
    const { tool, kind, invocation } = wanted;
    const { callId, owner, signal } = invocation;
    const entered = now().getTime();
    await ordered.ready;
    const pending = approver ? approver(wanted) : wanted;
    // Later calls do not wait while a person is asked about this one.
    if (pending instanceof Promise) ordered.release();
    const decision: CallDecision = await pending;
    // While the person was being asked, another call may have taken this id.
    call.callId = callId;
    const earlier = findEarlier(journal, call, invocation);
    if ("unanswered" in decision) return { ok: false, text: decision.unanswered };
    if ("refusal" in decision) return refuse(decision.refusal, earlier);

    const begin = () => {
      decision.use?.();
      return beginCall(journal, call, earlier);
    };
    const seq = decision.use ? store.transaction(begin) : begin();
    const made: Call = { ...wanted, args: decision.args, scope: decision.scope };
    const ended = await keptBefore(made, deps.beforeEffect);
    const started = performance.now();
    const { state, answer, lasts } = await perform(made, { redactor, log, graceMs, spentMs: now().getTime() - entered });
    if (ended) lasts ? lasting.add(owner, lasts, ended) : ended();
    const outcome = audit.outcome(state, answer.text, performance.now() - started);
    const record = () => journal.end(seq, kind, outcome);
    await whenNotHeld(record, () => signal.aborted).catch((error: unknown) => {
      log.error("a tool's result could not be recorded", { tool: tool.name, owner, error });
    });
    return state === "refused" || state === "unknown" ? { ...answer, state } : answer;
  }

  /** Joins a call that is already running instead of making it twice. */
  function passOnce(bound: Bound, args: unknown, invocation: ToolInvocation): Promise<CallAnswer> {
    const { name } = bound.tool;
    const key = JSON.stringify([invocation.sessionId, invocation.callId, invocation.attempt, name]);
    const live = running.get(key);
    if (live) return live;
    const answer = whenWritable(deps, invocation, () => pass(bound, args, invocation))
      .then((told) => {
        const exitCode = name === "shell" ? exitCodeIn(told.text) : undefined;
        if (exitCode !== undefined) invocation.report?.({ exitCode });
        return told;
      })
      .catch((error: unknown) => {
        log.error("a tool call could not pass the gate", { tool: name, owner: invocation.owner, error });
        return notRecorded(name, error);
      })
      .finally(() => running.delete(key));
    running.set(key, answer);
    return answer;
  }

  return {
    bind: (tools, scope) =>
      tools.map((tool) => {
        const shape = shapeOf(tool);
        const scopeFor = (owner: string) => (typeof scope === "function" ? scope(owner) : scope);
        return Object.assign(offered(tool, shape), {
          call: (args, invocation) =>
            passOnce({ tool, schema: shape.strict, scope: scopeFor(invocation.owner) }, args, invocation),
          earlier: ({ owner, attempt, sessionId, settled }) =>
            earlierEffects(journal, { owner, attempt, sessionId, tool: tool.name }, settled, audit),
          turnEnded: (owner) => lasting.end(owner, tool.turnEnded?.(owner)),
        } satisfies Omit<EngineTool, keyof ReturnType<typeof offered>>);
      }),
    callsOf: journal.callsOf,
    effectsOf: journal.effectsOf,
  };
}

/**
 * A call that cannot be recorded is not run. It waits for disk space, or for another program to release the database, and the
 * turn's time limits pause meanwhile. `pass` throws only before the tool has run.
 */
async function whenWritable<T>(
  { store, folder }: Pick<GateDeps, "store" | "folder">,
  { signal, pause }: ToolInvocation,
  pass: () => Promise<T>,
): Promise<T> {
  const paused = async (wait: Promise<void>) => {
    const goOn = pause?.();
    await wait;
    goOn?.();
  };
  if (folder !== undefined && !hasRoom(folder)) await paused(whenRoom(folder, signal));
  const beginAndEnd = () => store.soft(() => undefined);
  for (;;) {
    try {
      return await pass();
    } catch (error) {
      if (!isBusy(error) || signal.aborted) throw error;
      await paused(whenNotHeld(beginAndEnd, () => signal.aborted));
    }
  }
}

/** Records the start of a call, or continues the record of an earlier attempt. */
function beginCall(journal: ToolCalls, call: NewToolCall, earlier: ToolCall | undefined): number {
  if (earlier) journal.carryOver(earlier, call.attempt, "begun");
  return earlier?.seq ?? journal.begin(call);
}

function notRecorded(tool: string, error: unknown): CallAnswer {
  const other = isBusy(error) ? "another program holds IO's database" : "of a fault inside IO";
  const why = isDiskFull(error) ? "the disk is full" : other;
  return { ok: false, state: "refused", text: `${tool} was not run: the call could not be recorded, because ${why}.` };
}

/** Saves what a call may change in folders of this host. */
async function keptBefore({ tool, args, kind, scope, invocation }: Call, keep: GateDeps["beforeEffect"]) {
  const isElsewhere = tool.onHost && invocation.elsewhere !== undefined;
  if (!keep || !tool.writes || kind !== "effect" || isElsewhere || invocation.signal.aborted) return undefined;
  return keep(invocation.owner, tool.writes(args), scope);
}

/** Effects that continue after their calls. What they change counts as the turn's until they end or the turn ends. */
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

/** Compiles each schema once, since tools are bound anew for every agent, and when it is first needed: a start is not. */
function createShapes() {
  const shapes = new WeakMap<Tool["schema"], Shape>();
  return ({ schema, parameters }: Tool): Shape => {
    const known = shapes.get(schema) ?? createShape(schema, parameters);
    shapes.set(schema, known);
    return known;
  };
}

interface Shape {
  readonly strict: Tool["schema"];
  readonly parameters: Record<string, unknown>;
}

function createShape(schema: Tool["schema"], given: Tool["parameters"]): Shape {
  let strict: Tool["schema"] | undefined = given && schema;
  let parameters = given;
  return {
    get strict() {
      strict ??= schema.strict();
      return strict;
    },
    get parameters() {
      parameters ??= parametersOf(schema);
      return parameters;
    },
  };
}

/** What a model is shown of a tool. */
function offered({ name, description, server }: Tool, shape: Shape) {
  return {
    ...{ name, description, ...(server !== undefined && { optional: true as const }) },
    get parameters() {
      return shape.parameters;
    },
  };
}
