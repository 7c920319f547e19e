import type { Engine, Session, SessionSpec } from "../../engine/port.ts";
import type { SquadSafety } from "../../home/safety-config.ts";
import { clipToTokens } from "../../lib/estimate-tokens.ts";
import { DATA_RULE } from "../../lib/untrusted.ts";
import type { SandboxProfile } from "../../process/sandbox.ts";
import type { RunModel } from "../../protocol/runs.ts";
import type { EngineTool } from "../../protocol/turns.ts";
import { readJson } from "../../store/read-json.ts";
import type { Runs } from "../../store/runs.ts";
import type { ToolScope } from "../../tools/tool.ts";
import type { RemoteFolder } from "../../workers/remote/remote-job.ts";
import type { RemoteWork } from "../../workers/remote/remote-work.ts";
import { type Agent, type Duty, type ToolName, toolsFor } from "../pipeline/agents.ts";
import { Reply } from "../steps/reply.ts";

/** Binds the named tools, behind the gate, to work in one folder. */
export type Bind = (tools: ToolName[], scope: ToolScope) => EngineTool[];

/** What determines an agent's session. */
export interface SessionFor {
  agent: string;
  duty: Duty;
  /** The model's name, unless the agent has its own. */
  model: string;
  cwd: string;
  /** The lasting session to use; without one every attempt gets its own. */
  session?: string;
}

export interface AgentSessionsDeps {
  engine: Pick<Engine, "session">;
  bind: Bind;
  runId: string;
  runs: Pick<Runs, "resultsIn">;
  /** What commands may do in a folder of the run. */
  sandboxProfile: (cwd: string) => SandboxProfile;
  safety: SquadSafety;
  projectPath: string;
  /** The worktrees of the other repositories that the run changes. */
  otherWorktrees: readonly string[];
  /** Returns the model that serves a name of the pipeline. */
  serving: (name: string) => Pick<RunModel, "model">;
  /** The project's conventions as they were before the run began: no agent of the run can change them for the others. */
  conventions: (window: number) => string;
  /** Finds a worker for work in a folder of the run. */
  remoteWork?: { at: RemoteWork["at"]; place: (cwd: string) => Omit<RemoteFolder, "access"> | undefined } | undefined;
}

/** The most that a new session gets of one earlier answer. */
const ANSWER_TOKENS = 1_500;

/** Opens the sessions in which a run's agents are asked. */
export function createAgentSessions({
  engine,
  bind,
  runId,
  runs,
  sandboxProfile,
  safety,
  projectPath,
  otherWorktrees,
  serving,
  conventions,
  remoteWork,
}: AgentSessionsDeps) {
  const begun = new Set<string>();

  /** An agent's earlier answers, latest first, for a session whose own record is lost. */
  const answersIn = (sessionId: string): string =>
    runs
      .resultsIn(runId, sessionId)
      .flatMap((result) => {
        const reply = readJson(Reply, result);
        return reply?.ok ? [`You answered: ${clipToTokens(reply.text, ANSWER_TOKENS)}`] : [];
      })
      .reverse()
      .join("\n\n");

  return {
    open(call: SessionFor, agent: Agent, sessionId: string): Session {
      begun.add(sessionId);
      const access = call.duty === "build" ? ("write" as const) : ("read" as const);
      const remote = remoteWork?.at(() => {
        const place = remoteWork.place(call.cwd);
        return place && { ...place, access };
      });
      const spec: SessionSpec = {
        id: sessionId,
        model: serving(agent.model ?? call.model).model,
        systemMessage: (window) =>
          [agent.instructions, DATA_RULE, conventions(window)].filter((part) => part !== "").join("\n\n"),
        tools: bind(toolsFor(agent, call.duty), {
          ...{ cwd: call.cwd, within: call.cwd, project: projectPath, actor: actorOf(call) },
          ...(otherWorktrees.length > 0 && { besides: otherWorktrees }),
          ...(safety.approvals && { approvals: safety.approvals }),
          ...(safety.mode && { strictest: safety.mode }),
          profile: profileFor(sandboxProfile(call.cwd), access),
        }),
        workingDirectory: call.cwd,
        handover: (window) => clipToTokens(answersIn(sessionId), Math.floor(window / 8)),
      };
      const local = engine.session(spec);
      return remote ? remote.session(spec, local, { lasting: call.session !== undefined }) : local;
    },
    begun: () => [...begun],
  };
}
export type AgentSessions = ReturnType<typeof createAgentSessions>;

/** The agent's name in the audit of tools and usage. */
export function actorOf({ agent }: Pick<SessionFor, "agent">): string {
  return `swarm:${agent}`;
}

/** A read-only agent may write neither its own worktree nor those of other repositories. */
function profileFor(profile: SandboxProfile, access: "write" | "read"): SandboxProfile {
  if (access === "write") return { ...profile, access };
  return { ...profile, access, writable: [], readable: [...(profile.readable ?? []), ...(profile.writable ?? [])] };
}
