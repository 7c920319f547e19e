import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Engine } from "../../engine/port.ts";
import { ExitCode, UserError } from "../../lib/errors.ts";
import { DATA_RULE } from "../../lib/untrusted.ts";
import type { PlanningResult } from "../../protocol/plans.ts";
import type { RunModel, Said } from "../../protocol/runs.ts";
import { noUsage, type Spending } from "../../protocol/usage.ts";
import type { Bind } from "../agents/agent-sessions.ts";
import { clip, untrusted } from "../agents/prompts.ts";
import { type Served, servedLine } from "../agents/served.ts";
import { openDocuments, PLAN, PLAN_DRAFT } from "../context/documents.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { saysKeyword, withoutKeyword } from "../review/verdict.ts";
import { addUsage } from "../steps/usage.ts";

export const REQUIREMENTS_CLEAR = "REQUIREMENTS_CLEAR";
export const MAX_ROUNDS = 10;

export interface PlanningInput {
  projectPath: string;
  issue: string;
  settings: RunSettings;
  /** Asks the person the pm's questions. An empty answer means "use your judgement", null that nobody is left to ask. */
  ask: (questions: string, round: number) => Promise<string | null>;
  /** Allow substitutes for missing models that a person named. */
  standIns?: boolean | undefined;
  signal?: AbortSignal | undefined;
  /** Called with the model before it is asked. */
  onModel?: ((model: RunModel) => void) | undefined;
  /** Called with the agent whose turn begins. */
  onTurn?: ((agent: string) => void) | undefined;
  onSay?: ((said: Said) => void) | undefined;
  /** The channel it came from, for the usage record. */
  source?: string | undefined;
}

export interface PlanningDeps {
  engine: Pick<Engine, "session" | "deleteSession">;
  bind: Bind;
  /** The primary model of the project's pipeline. */
  model: RunModel;
  spending: Spending | undefined;
  now: () => Date;
}

const JUDGEMENT = "Use your judgement.";

const PM = `You clarify a request before it is built. Look at the project first, so that you do not ask what its files already answer.

Ask only what would change what is built: numbered, short, with the answer you would assume. At most five questions at a time. "Use your judgement" is an answer: then decide, and say what you assumed.

When nothing of weight is open, write the requirements: the goal, numbered requirements that can be checked, what is out of scope, and what was assumed. End with this line, alone:

${REQUIREMENTS_CLEAR}`;

const ENGINEER = `You analyse what a set of requirements means for a code base. Read the code it touches. You change nothing.

Write:
- **Complexity**: small, medium or large, and why.
- **Scope**: the files and parts that change, and those that must not.
- **Approach**: the steps in order, each small enough to be reviewed alone.
- **Risks**: what can break, what is uncertain, what has to be tested.
- **Effort**: which steps can be done at the same time.`;

/** Clarifies a request with the person, has it analysed, and writes plan.md. */
export async function runPlanning(deps: PlanningDeps, input: PlanningInput): Promise<Omit<PlanningResult, "checks">> {
  const { engine, bind, model, spending, now } = deps;
  const { projectPath, issue, settings, ask } = input;
  const signal = input.signal ?? new AbortController().signal;
  const documents = openDocuments({ projectPath, docDir: settings.docDir, now });
  const id = `swarm-plan-${randomUUID()}`;
  const place = (name: string) => join(projectPath, settings.docDir, name);
  const rounds: PlanningResult["rounds"] = [];
  const answered: Served[] = [];
  let usage = noUsage();

  const talk = async (agent: "pm" | "engineer", prompt: string): Promise<string> => {
    const session = engine.session({
      id: `${id}-${agent}`,
      model: model.model,
      systemMessage: () => `${agent === "pm" ? PM : ENGINEER}\n\n${DATA_RULE}`,
      tools: bind(["file_ops_read"], { cwd: projectPath, actor: `swarm:${agent}` }),
      workingDirectory: projectPath,
    });
    const spender = { owner: id, actor: `swarm:${agent}`, agent, ...(input.source && { source: input.source }) };
    let why = "the reply was empty";
    input.onTurn?.(agent);
    for (let attempt = 1; attempt <= 1 + settings.maxRetries; attempt += 1) {
      const result = await session.run({
        owner: `${id}/${agent}#${attempt}`,
        prompt,
        attempt,
        signal,
        silenceMs: settings.sessionTimeoutMs,
        capMs: Math.min(settings.sessionTimeoutMs * 12, 2 ** 31 - 1),
        onEvent: (event) => {
          if (event.kind === "delta") input.onSay?.({ key: agent, agent, stream: null, text: event.text });
          if (event.kind === "usage") spending?.record(spender, event.call);
        },
        ...(spending && { beforeCall: (callSignal) => spending.permit(spender, { signal: callSignal, life: 1 }) }),
      });
      usage = addUsage(usage, result.usage);
      if (result.outcome === "done" && result.text.trim() !== "") {
        const served = result.served.join(", ") || model.model;
        answered.push({ agent, model: served, asked: served === model.name || model.rehearsal ? null : model.name });
        return result.text;
      }
      why = result.error?.message ?? why;
      if (signal.aborted || result.error?.code === "budget") break;
    }
    const kept =
      rounds.length > 0 ? ` What was answered is in ${place(PLAN_DRAFT)}: go on with swarm plan -p ${place(PLAN_DRAFT)}` : "";
    if (signal.aborted) throw new UserError(`planning was interrupted.${kept}`, { exitCode: ExitCode.interrupted });
    throw new UserError(`planning ended early: ${agent} gave no answer: ${why}${kept}`);
  };

  const request = `## Request\n\n${clip(issue.trim(), 60_000)}`;
  const told = () => {
    const talks = rounds.map(
      ({ questions, answer }, index) => `### Round ${index + 1}\n\n${questions.trim()}\n\n**Answer:** ${answer}`,
    );
    return talks.length > 0 ? [`## Questions and answers\n\n${talks.join("\n\n")}`] : [];
  };

  input.onModel?.(model);
  let nobody = false;
  let reply = await talk("pm", `${untrusted(issue)}\n\nAsk what has to be asked, or write the requirements.`);
  while (!saysKeyword(reply, REQUIREMENTS_CLEAR) && rounds.length < MAX_ROUNDS && !nobody) {
    const given = await ask(reply, rounds.length + 1);
    nobody = given === null;
    const answer = given?.trim() || JUDGEMENT;
    if (signal.aborted) break;
    rounds.push({ questions: reply, answer });
    documents.write(PLAN_DRAFT, "Plan, not finished", [request, ...told()].join("\n\n"));
    const last = nobody || rounds.length >= MAX_ROUNDS;
    reply = await talk("pm", last ? `${answer}\n\nThere will be no more answers. Write the requirements now.` : answer);
  }
  const requirements = withoutKeyword(reply, REQUIREMENTS_CLEAR);
  const analysis = await talk(
    "engineer",
    `${untrusted(issue)}\n\n## Requirements\n${clip(requirements, 60_000)}\n\nAnalyse what this means for the project you stand in.`,
  );

  const body = [request, `## Requirements\n\n${requirements}`, ...told(), `## Engineering analysis\n\n${analysis.trim()}`];
  documents.write(PLAN, "Plan", body.join("\n\n"), servedLine(answered, [model]));
  documents.remove(PLAN_DRAFT);
  for (const agent of ["pm", "engineer"]) await engine.deleteSession(`${id}-${agent}`).catch(() => undefined); // A leftover session does no harm.
  const served = [...new Set(answered.flatMap((each) => each.model ?? []))];
  return { path: place(PLAN), requirements, analysis, rounds, model, served, usage };
}
