import { z } from "zod";
import type { Engine, Session, SessionSpec } from "../engine/port.ts";
import { squadProtection, stricterMode } from "../home/modes.ts";
import type { Mode } from "../home/safety-config.ts";
import { clipToTokens } from "../lib/estimate-tokens.ts";
import { newId } from "../lib/ids.ts";
import { named, oneLine } from "../lib/quoted.ts";
import type { Redactor } from "../lib/redact.ts";
import { findConventions, formatConventions } from "../project/conventions.ts";
import type { Agent, Decision, Squad } from "../protocol/squads.ts";
import type { SessionRows } from "../store/sessions.ts";
import { type SquadStore, squadOwner } from "../store/squads.ts";
import type { Gate } from "../tools/gate.ts";
import { readingTools, type Tool, tool } from "../tools/tool.ts";
import type { RemoteWork } from "../workers/remote/remote-work.ts";
import { type ObservedCall, observeTools } from "./activity.ts";
import { modelTierFor } from "./complexity.ts";
import type { Facts } from "./facts.ts";
import { agentPrompt, TOLD_DECISIONS } from "./prompt.ts";
import type { WorkFolder } from "./work-folders.ts";

export interface AgentDeps {
  engine: Engine;
  gate: Gate;
  store: SquadStore;
  sessions: SessionRows;
  facts: Facts;
  redactor: Redactor;
  /** The tools every agent has: the shell, the files and the wiki. */
  tools: readonly Tool[];
  /** Further tools that agents may use in a project. */
  moreTools?: ((projectPath: string) => readonly Tool[]) | undefined;
  logDecision: (slug: string, decision: { decision: string; context?: string | undefined; author: string }) => Decision;
  onCall: (call: ObservedCall) => void;
  /** The global mode. */
  mode: () => Mode;
  /** The user's standing rules for work on a project. */
  rulesFor: (projectPath: string) => string;
  remoteWork?: Pick<RemoteWork, "at">;
}

/** The model to ask, and the folder to work in. */
interface SessionRequest {
  model: string | null;
  place: WorkFolder;
  /** Prepares the folder, if the work turns out to be done here. */
  prepare: (signal: AbortSignal) => Promise<void>;
}

/** A large squad is not listed in full to each of its agents. */
const MAX_COLLEAGUES = 12;
/** How many of its latest tasks an agent is reminded of when its memory is lost. */
const TOLD_TASKS = 8;
const NewDecision = z.object({ decision: z.string().min(1), context: z.string().optional() });
const FINGERPRINT = "squad-agent-1";

/** Each agent's lasting session: its own memory, system message and tools, in its project's folder. */
export function createAgents({
  engine,
  gate,
  store,
  sessions,
  facts,
  redactor,
  tools,
  moreTools = () => [],
  logDecision,
  onCall,
  mode,
  rulesFor,
  remoteWork,
}: AgentDeps) {
  const sessionWith = (id: string, squad: Squad, agent: Agent, { model, place, prepare }: SessionRequest): Session => {
    const { slug, projectPath } = squad;
    const { characterName } = agent;
    const ownDecisions = decisionTool((decision) => logDecision(slug, { ...decision, author: characterName }));
    const all = [...tools, ownDecisions, ...moreTools(projectPath)];
    const { sandbox, approvals } = squadProtection(place.safety);
    const strictest = place.safety.mode;
    const { cwd, others, sandboxProfile = sandbox && { height: sandbox } } = place;
    const own = place.own;
    const where = own && { ...own.tree, cwd, projectPath, height: sandbox ?? null, installed: [...own.installed] };
    // A job on another host brings only one repository along.
    const remote = where && others.length === 0 && remoteWork?.at(() => ({ ...where, access: "write" }));
    const offered = stricterMode(mode(), strictest) === "plan" ? readingTools(all) : all;
    const bound = gate.bind(offered, {
      ...{ cwd, actor: squadOwner(slug, characterName) },
      ...(own && { within: cwd, project: projectPath }),
      ...(others.length > 0 && { besides: others.map((other) => other.cwd) }),
      ...(approvals && { approvals }),
      ...(strictest && { strictest }),
      ...(sandboxProfile && { profile: sandboxProfile }),
    });
    const spec: SessionSpec = {
      id,
      ...(model !== null && { model }),
      systemMessage: async (window) =>
        agentPrompt({
          squad,
          agent,
          place,
          colleagues: store.agents(slug, MAX_COLLEAGUES),
          decisions: store.lastDecisions(slug, TOLD_DECISIONS),
          rules: rulesFor(projectPath),
          facts: await facts.of(projectPath),
          otherFacts: await Promise.all(others.map((other) => facts.of(other.projectPath))),
          conventions: formatConventions(await findConventions(projectPath), window),
        }),
      tools: observeTools(bound, redactor, onCall),
      workingDirectory: cwd,
      handover: (window) => clipToTokens(earlierWork(slug, characterName), Math.floor(window / 8)),
    };
    const here = engine.session(spec);
    const local: Session = {
      ...here,
      async run(request) {
        await prepare(request.signal);
        return here.run(request);
      },
    };
    return remote ? remote.session(spec, local, { lasting: true }) : local;
  };

  /** An agent's earlier work, for a session whose own record is lost. */
  const earlierWork = (slug: string, agent: string): string =>
    store
      .listTasks({ squad: slug, agent, status: "done", limit: TOLD_TASKS })
      .map(
        ({ description, result, finishedAt }) =>
          `- [${finishedAt}] ${oneLine(description, 400)}: ${oneLine(result ?? "no report", 800)}`,
      )
      .join("\n");

  return {
    /** The model for a task: the agent's tier, raised or lowered by the task itself. */
    modelFor(agent: Agent, description: string): { model: string; reason: string } {
      const { tier, reason } = modelTierFor(agent.modelTier, description);
      const served = engine.modelFor(tier);
      return { model: served.model, reason: `model ${named(served.model)}: ${reason}; ${served.reason}` };
    },
    /** Resolves when the available models are known. */
    modelsKnown: () => engine.models().then(() => undefined),
    /** The agent's current session; one begun by an earlier life is found by its id. */
    session(squad: Squad, agent: Agent, { begunIn, ...asked }: SessionRequest & { begunIn: string | null }): Session {
      const owner = squadOwner(squad.slug, agent.characterName);
      const begun = begunIn === null ? undefined : sessions.find(begunIn);
      const row = begun?.owner === owner ? begun : sessions.current(owner);
      if (row) return sessionWith(row.id, squad, agent, asked);
      const id = newId(`squad-${squad.slug}`);
      sessions.begin(id, owner, FINGERPRINT);
      return sessionWith(id, squad, agent, asked);
    },
  };
}
export type Agents = ReturnType<typeof createAgents>;

function decisionTool(log: (decision: { decision: string; context?: string | undefined }) => Decision): Tool {
  return tool({
    name: "squad_log_decision",
    description: "Log a decision that later work must keep to: one sentence, and why as its context.",
    schema: NewDecision,
    kind: "effect",
    deadlineMs: 10_000,
    run: async (given) => `Logged at ${log(given).createdAt}.`,
  });
}
