import { createHash } from "node:crypto";
import { z } from "zod";
import type { Engine, Session } from "../../engine/port.ts";
import { clipToTokens } from "../../lib/estimate-tokens.ts";
import type { RunModel, Said } from "../../protocol/runs.ts";
import type { EngineTool, TurnResult } from "../../protocol/turns.ts";
import { type ModelCall, noUsage, type Usage } from "../../protocol/usage.ts";
import { readJson } from "../../store/read-json.ts";
import type { Runs } from "../../store/runs.ts";
import { type Agent, type Duty, type ToolName, toolsFor } from "../pipeline/agents.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { type Journal, RunFailed, RunStopped } from "./journal.ts";

/** An agent's answer, or why there is none. */
export const Reply = z.discriminatedUnion("ok", [
  z.object({ ok: z.literal(true), text: z.string() }),
  z.object({ ok: z.literal(false), reason: z.string() }),
]);
export type Reply = z.infer<typeof Reply>;

/** Gives the tools of these names, standing in a folder, behind the reviewer. */
export type Bind = (tools: ToolName[], scope: { cwd: string; within?: string; actor: string }) => EngineTool[];

export interface Call {
  key: string;
  phase: string;
  stream?: number;
  agent: string;
  duty: Duty;
  /** The name of the model, unless the agent has one of its own. */
  model: string;
  prompt: string;
  cwd: string;
  /** The lasting session this call belongs to; without one it stands alone. */
  session?: string;
  /** What the reply means, for the record. */
  verdict?: (text: string) => string;
  /** Who will be asked after this: their sessions are made while this one works. */
  next?: readonly Expected[];
}

/** Who will be asked soon, for the first time in their session. */
export type Expected = Pick<Call, "key" | "agent" | "duty" | "model" | "cwd" | "session">;

/** Asks agents, one journal step a question. */
export interface Caller {
  ask(call: Call): Promise<Reply>;
  /** Makes the sessions of those who will be asked soon. */
  expect(calls: readonly Expected[]): void;
  /** The sessions that were begun and are no longer needed. */
  spent(): string[];
}

export interface CallerDeps {
  engine: Pick<Engine, "session">;
  bind: Bind;
  journal: Journal;
  runs: Runs;
  agents: ReadonlyMap<string, Agent>;
  /** The model to ask for a name of the pipeline. */
  serving: (name: string) => Pick<RunModel, "model">;
  settings: Pick<RunSettings, "sessionTimeoutMs" | "maxRetries">;
  signal: AbortSignal;
  /** Told what an agent says, as it says it. */
  onSay?: ((said: Said) => void) | undefined;
  recordUsage?: ((owner: string, actor: string, call: ModelCall) => void) | undefined;
}

/** A turn that goes on working is not cut at the limit of silence, but here. */
const CAP_FACTOR = 12;
const HOPELESS = new Set(["unauthorized", "unpaid", "no_model", "no_chat", "no_tools", "wrong_address"]);

export function createCaller(parts: CallerDeps): Caller {
  const { engine, bind, journal, runs, agents, serving, settings, signal, onSay, recordUsage } = parts;
  const begun = new Set<string>();

  const open = (call: Expected, agent: Agent, sessionId: string): Session => {
    begun.add(sessionId);
    return engine.session({
      id: sessionId,
      model: serving(agent.model ?? call.model).model,
      systemMessage: () => agent.instructions,
      tools: bind(toolsFor(agent, call.duty), { cwd: call.cwd, within: call.cwd, actor: `swarm:${call.agent}` }),
      workingDirectory: call.cwd,
      handover: (window) => clipToTokens(answeredIn(sessionId), Math.floor(window / 8)),
    });
  };
  /** What an agent answered before, the latest first, for a session whose own record is lost. */
  const answeredIn = (sessionId: string): string =>
    runs
      .resultsIn(journal.runId, sessionId)
      .flatMap((result) => {
        const reply = readJson(Reply, result);
        return reply?.ok ? [`You answered: ${clipToTokens(reply.text, 1_500)}`] : [];
      })
      .reverse()
      .join("\n\n");

  const expect = (calls: readonly Expected[]): void => {
    for (const call of calls) {
      const agent = agents.get(call.agent);
      if (!agent || runs.step(journal.runId, call.key)) continue;
      void open(call, agent, call.session ?? sessionOf(journal.runId, `${call.key}#1`)).prepare();
    }
  };

  async function once(
    call: Call,
    agent: Agent,
    sessionId: string,
    attempt: number,
    prompt: string,
    life: Hooks,
  ): Promise<TurnResult> {
    const actor = `swarm:${call.agent}`;
    const owner = `${journal.runId}/${call.key}#${attempt}`;
    return open(call, agent, sessionId).run({
      owner,
      prompt,
      attempt: journal.life,
      signal,
      silenceMs: settings.sessionTimeoutMs,
      capMs: Math.min(settings.sessionTimeoutMs * CAP_FACTOR, 2 ** 31 - 1),
      onAccepted: life.accepted,
      ...(life.interrupted && { interrupted: life.interrupted }),
      onEvent: (event) => {
        if (event.kind === "delta") onSay?.({ key: call.key, agent: call.agent, stream: call.stream ?? null, text: event.text });
        if (event.kind === "usage") recordUsage?.(journal.runId, actor, event.call);
      },
    });
  }

  return {
    spent: () => [...begun],
    expect,
    ask(call) {
      const agent = agents.get(call.agent);
      if (!agent) throw new RunFailed(`there is no agent "${call.agent}"`);
      // What serves may be another model in a later life: it is not part of what makes this the same step.
      const name = agent.model ?? call.model;
      const head = {
        key: call.key,
        kind: "call" as const,
        phase: call.phase,
        stream: call.stream ?? null,
        agent: call.agent,
        model: serving(name).model,
        asked: name,
      };
      return journal.step(Reply, head, { prompt: call.prompt, model: name }, async ({ earlier, track }) => {
        let usage = noUsage();
        let reason = "";
        let model: string | undefined;
        const first = Math.max(1, earlier?.attempts ?? 1);
        for (let attempt = first; attempt <= 1 + settings.maxRetries; attempt += 1) {
          const sessionId = call.session ?? sessionOf(journal.runId, `${call.key}#${attempt}`);
          const previousPromptId = runs.promptBefore(journal.runId, sessionId, call.key);
          const cutOff = attempt === first && earlier?.sessionId === sessionId;
          const prompt = attempt > 1 && call.session ? `${again(reason)}\n\n${call.prompt}` : call.prompt;
          track({ attempts: attempt, sessionId, promptId: cutOff ? (earlier?.promptId ?? null) : null });
          const result = await once(call, agent, sessionId, attempt, prompt, {
            accepted: (promptId) => {
              track({ attempts: attempt, sessionId, promptId });
              expect(call.next ?? []);
            },
            interrupted: cutOff ? { promptId: earlier?.promptId ?? undefined, previousPromptId } : undefined,
          });
          usage = add(usage, result.usage);
          model = result.served.join(", ") || undefined;
          if (signal.aborted) throw new RunStopped("the run was stopped");
          if (result.outcome === "done" && result.text.trim() !== "") {
            const verdict = call.verdict?.(result.text);
            return {
              value: { ok: true, text: result.text },
              usage,
              model,
              ...(verdict !== undefined && { verdict }),
            };
          }
          reason = result.error?.message ?? (result.outcome === "done" ? "the reply was empty" : `the turn ${result.outcome}`);
          if (result.error && HOPELESS.has(result.error.code)) break;
        }
        return { value: { ok: false, reason }, error: reason, usage, model };
      });
    },
  };
}

interface Hooks {
  accepted: (promptId: string) => void;
  interrupted: { promptId: string | undefined; previousPromptId: string | undefined } | undefined;
}

function again(reason: string): string {
  return `Your last turn ended early${reason ? ` (${reason})` : ""}. What it did to the working tree is still there: look before you go on. What was asked:`;
}

/** A session's id, made from what it is for. */
export function sessionOf(runId: string, what: string): string {
  return `swarm-${runId}-${createHash("sha256").update(what).digest("hex").slice(0, 16)}`;
}

export function add(a: Usage, b: Usage): Usage {
  return {
    calls: a.calls + b.calls,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
  };
}
