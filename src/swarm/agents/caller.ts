import { oneLine } from "../../lib/quoted.ts";
import type { RunModel, Said } from "../../protocol/runs.ts";
import type { CallNews, Retry, TurnResult } from "../../protocol/turns.ts";
import { noUsage, type Spender, type Spending } from "../../protocol/usage.ts";
import type { RunRow, Runs } from "../../store/runs.ts";
import type { Agent } from "../pipeline/agents.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { type Journal, RunFailed, RunStopped, type StepContext, type StepOutcome } from "../steps/journal.ts";
import { attemptSession, turnAttempt, turnOwner } from "../steps/keys.ts";
import { Reply } from "../steps/reply.ts";
import { addUsage } from "../steps/usage.ts";
import { type AgentSessions, actorOf, type SessionFor } from "./agent-sessions.ts";

/** An agent that will soon be asked for the first time in that session. */
export interface UpcomingCall extends SessionFor {
  key: string;
}

export interface Call extends UpcomingCall {
  phase: string;
  stream?: number;
  prompt: string;
  /** Summarizes the reply for the record. */
  verdict?: (text: string) => string;
  /** The agents asked after this one: their sessions are prepared while this one works. */
  next?: readonly UpcomingCall[];
  /** Other work to start meanwhile. */
  meanwhile?: () => void;
}

/** Asks agents; each question is one journal step. */
export interface Caller {
  ask(call: Call): Promise<Reply>;
  /** Prepares the sessions of agents that will be asked soon. */
  prepareSessions(calls: readonly UpcomingCall[]): void;
  /** Every session that was begun; deleted when the run is over. */
  sessions(): string[];
}

export interface CallerDeps {
  sessions: AgentSessions;
  journal: Journal;
  runs: Pick<Runs, "step" | "promptBefore">;
  run: Pick<RunRow, "conversation" | "squad">;
  agents: ReadonlyMap<string, Agent>;
  /** Returns the model that serves a name of the pipeline. */
  serving: (name: string) => Pick<RunModel, "model" | "rehearsal">;
  settings: Pick<RunSettings, "sessionTimeoutMs" | "maxRetries">;
  signal: AbortSignal;
  /** Called whenever a model is asked something new. */
  onAsked?: () => void;
  /** Receives what an agent says, as it says it. */
  onSay?: ((said: Said, runId: string) => void) | undefined;
  spending?: Spending | undefined;
  /** Records a note for people to read. */
  note: (text: string) => void;
  /** Text to put before every prompt of an agent that works in the folder. */
  preamble?: (cwd: string) => string;
}

/** A turn that keeps working may last up to this many times the silence limit. */
const CAP_FACTOR = 12;
const MAX_NOTICE = 1_000;
/** Errors that no retry can fix. */
const HOPELESS = new Set(["unauthorized", "unpaid", "no_model", "no_chat", "no_tools", "wrong_address", "budget"]);

export function createCaller(deps: CallerDeps): Caller {
  const { sessions, journal, runs, agents, serving } = deps;

  const prepareSessions = (calls: readonly UpcomingCall[]): void => {
    for (const call of calls) {
      const agent = agents.get(call.agent);
      if (!agent || runs.step(journal.runId, call.key)) continue;
      void sessions.open(call, agent, call.session ?? attemptSession(journal.runId, call.key, 1)).prepare();
    }
  };

  return {
    sessions: sessions.begun,
    prepareSessions,
    ask(asked) {
      const said = deps.preamble?.(asked.cwd) ?? "";
      const call = said === "" ? asked : { ...asked, prompt: `${said}\n\n${asked.prompt}` };
      const agent = agents.get(call.agent);
      if (!agent) throw new RunFailed(`there is no agent "${call.agent}"`);
      const name = agent.model ?? call.model;
      const head = {
        key: call.key,
        kind: "call" as const,
        phase: call.phase,
        stream: call.stream ?? null,
        agent: call.agent,
        model: serving(name).model,
        asked: serving(name).rehearsal ? serving(name).model : name,
        prompt: call.prompt,
      };
      // After a restart another model may serve the name; the step is the same as long as the name is.
      const inputs = { prompt: call.prompt, model: name };
      return journal.step(Reply, head, inputs, (life) => askUntilAnswered(deps, call, agent, life, prepareSessions));
    },
  };
}

/** Asks, and retries errors and empty replies as often as the settings allow. */
async function askUntilAnswered(
  deps: CallerDeps,
  call: Call,
  agent: Agent,
  { earlier, track, tryBegins, retries }: StepContext,
  prepareSessions: Caller["prepareSessions"],
): Promise<StepOutcome<Reply>> {
  const { journal, runs, settings, signal } = deps;
  let isAsked = false;
  const onAsked = () => {
    if (isAsked || signal.aborted) return;
    isAsked = true;
    deps.onAsked?.();
    prepareSessions(call.next ?? []);
    call.meanwhile?.();
  };
  let usage = noUsage();
  let reason = "";
  let model: string | undefined;
  let worker: string | undefined;
  const first = Math.max(1, earlier?.attempts ?? 1);
  for (let attempt = first; attempt <= 1 + settings.maxRetries; attempt += 1) {
    const sessionId = call.session ?? attemptSession(journal.runId, call.key, attempt);
    const previousPromptId = runs.promptBefore(journal.runId, sessionId, call.key);
    const cutOff = attempt === first && earlier?.sessionId === sessionId;
    track({ attempts: attempt, sessionId, promptId: cutOff ? (earlier?.promptId ?? null) : null });
    const tryEnds = tryBegins();
    const result = await takeTurn(deps, call, agent, {
      sessionId,
      attempt,
      prompt: attempt > 1 && call.session ? afterBrokenTurn(reason, call.prompt) : call.prompt,
      interrupted: cutOff ? { promptId: earlier?.promptId ?? undefined, previousPromptId } : undefined,
      onAccepted: (promptId) => track({ attempts: attempt, sessionId, promptId }),
      onAsked,
      onRetry: retries,
    });
    usage = addUsage(usage, result.usage);
    model = result.served.join(", ") || undefined;
    worker = result.worker;
    if (signal.aborted) throw new RunStopped("the run was stopped");
    if (result.outcome === "done" && result.text.trim() !== "") {
      tryEnds(undefined);
      const verdict = call.verdict?.(result.text);
      return { value: { ok: true, text: result.text }, usage, model, worker, ...(verdict !== undefined && { verdict }) };
    }
    reason = result.error?.message ?? (result.outcome === "done" ? "the reply was empty" : `the turn ${result.outcome}`);
    tryEnds(reason);
    if (result.error && HOPELESS.has(result.error.code)) break;
    if (attempt <= settings.maxRetries) retries({ attempt, why: reason, waitMs: 0 });
  }
  return { value: { ok: false, reason }, error: reason, usage, model, worker };
}

interface Attempt {
  sessionId: string;
  attempt: number;
  prompt: string;
  onAccepted: (promptId: string) => void;
  onAsked: () => void;
  onRetry: (retry: Retry) => void;
  interrupted: { promptId: string | undefined; previousPromptId: string | undefined } | undefined;
}

function takeTurn(
  { sessions, journal, run, settings, signal, onSay, spending, note }: CallerDeps,
  call: Call,
  agent: Agent,
  { sessionId, attempt, prompt, onAccepted, onAsked, onRetry, interrupted }: Attempt,
): Promise<TurnResult> {
  const { runId, life } = journal;
  const spender: Spender = {
    ...{ owner: runId, actor: actorOf(call), agent: call.agent, run: runId, step: call.key },
    ...{ conversation: run.conversation ?? undefined, squad: run.squad ?? undefined },
  };
  return sessions.open(call, agent, sessionId).run({
    owner: turnOwner(runId, call.key),
    prompt,
    attempt: turnAttempt(life, attempt),
    signal,
    silenceMs: settings.sessionTimeoutMs,
    capMs: Math.min(settings.sessionTimeoutMs * CAP_FACTOR, 2 ** 31 - 1),
    onAccepted,
    spender,
    ...(interrupted && { interrupted }),
    onAsked,
    onEvent: (event) => {
      const speaker = { key: call.key, agent: call.agent, stream: call.stream ?? null };
      if (event.kind === "delta") onSay?.({ ...speaker, text: event.text }, runId);
      const did = event.kind === "tool" ? wordsOfTool(event) : "";
      if (did !== "") onSay?.({ ...speaker, text: "", did }, runId);
      if (event.kind === "usage") spending?.record(spender, event.call);
      if (event.kind === "retry") onRetry(event);
      if (event.kind === "notice") note(oneLine(event.text, MAX_NOTICE));
    },
    ...(spending && { beforeCall: (callSignal, flush) => spending.permit(spender, { signal: callSignal, flush, life }) }),
  });
}

/** Formats a tool call for somebody who watches: its arguments, its output, and how it failed. */
function wordsOfTool({ tool, state, args, output, exitCode }: CallNews & { tool: string; state: string }): string {
  if (state === "started") return `\n▸ ${tool === "shell" ? "$" : tool} ${oneLine(args ?? "", MAX_NOTICE)}\n`;
  if (state === "running") return output ?? "";
  if (typeof exitCode === "number" && exitCode !== 0) return `✕ exit ${exitCode}\n`;
  return state === "failed" ? "✕ failed\n" : "";
}

/** The prompt for a lasting session whose last turn may have left half-done work. */
function afterBrokenTurn(reason: string, asked: string): string {
  return `Your last turn ended early${reason ? ` (${reason})` : ""}. What it did to the working tree is still there: look before you go on. What was asked:\n\n${asked}`;
}
