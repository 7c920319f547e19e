import { z } from "zod";
import { indented, named, oneLine, quoted } from "../lib/quoted.ts";
import { locate } from "../lib/real-path.ts";
import { asData } from "../lib/untrusted.ts";
import { formatWaits } from "../protocol/approval-text.ts";
import { isProof } from "../protocol/check-words.ts";
import type { CheckEvidence, Run } from "../protocol/runs.ts";
import { type Stateful, showState } from "../protocol/shown-state.ts";
import { type Tool, ToolError, tool } from "../tools/tool.ts";
import { rewordMissingModels } from "./agents/models.ts";
import { describeSubstitutes, modelUses, otherNames } from "./agents/served.ts";
import { readRunSettings } from "./pipeline/settings.ts";
import type { Swarm } from "./run/swarm.ts";

export interface SwarmToolsDeps {
  swarm: Swarm;
  env: NodeJS.ProcessEnv;
  /** The project of a squad, and the squad's decisions. */
  squad: (slug: string) => { projectPath: string; decisions: string[] } | undefined;
  /** The conversation of a turn, which is told how the run ends. */
  conversationOf: (owner: string) => string | undefined;
  /** Called when a turn has started a run. */
  onStarted: (owner: string, runId: string) => void;
}

/** The tools by which IO runs pipelines in the background; the conversation that asked is told how a run ended. */
export function swarmTools({ swarm, env, squad, conversationOf, onStarted }: SwarmToolsDeps): Tool[] {
  return [
    tool({
      name: "swarm_run",
      description:
        "Run the whole pipeline (spec, tasks, code, review, tests) on an issue, for a squad's project or a folder. It works in the background.",
      schema: z.strictObject({
        slug: z.string().min(1).optional(),
        project_path: z.string().min(1).optional(),
        issue: z.string().min(1),
        stand_ins: z
          .boolean()
          .optional()
          .describe("true only if the user says that other models may serve for named ones that are not there"),
      }),
      kind: "effect",
      deadlineMs: 30_000,
      touches: ({ project_path }) => (project_path === undefined ? [] : [{ path: project_path, how: "write" }]),
      async run({ slug, project_path, issue, stand_ins }, { owner, cwd }) {
        if ((slug === undefined) === (project_path === undefined))
          throw new ToolError("Give either slug or project_path, and not both.");
        const team = slug === undefined ? undefined : squad(slug);
        if (slug !== undefined && !team) throw new ToolError(`There is no squad ${quoted(slug)}. squad_status lists them.`);
        const { id } = await swarm
          .start({
            projectPath: team?.projectPath ?? locate(project_path!, cwd),
            issue,
            settings: readRunSettings(env),
            squad: slug,
            decisions: team?.decisions,
            conversation: conversationOf(owner),
            standIns: stand_ins,
            unattended: true,
          })
          .catch(rewordMissingModels('"stand_ins": true, if the user says so'));
        onStarted(owner, id);
        const instead = describeSubstitutes(swarm.show(id)?.models ?? []).map((each) => `${each}. `);
        return `Run ${id} has begun. ${instead.join("")}You will be told when it ends; swarm_status {"run_id": "${id}"} tells how it stands.`;
      },
    }),
    tool({
      name: "swarm_status",
      description: "How a run stands, or the latest runs.",
      schema: z.strictObject({ run_id: z.string().min(1).optional() }),
      kind: "read",
      deadlineMs: 10_000,
      async run({ run_id }) {
        if (run_id === undefined) {
          const runs = swarm.list({ limit: 10 });
          return runs.length === 0
            ? "There are no runs yet."
            : asData(
                runs
                  .map(({ id, issue, ...run }) => `${id} ${showState({ kind: "run", ...run }).words}: ${firstLine(issue)}`)
                  .join("\n"),
              );
        }
        const run = swarm.show(run_id);
        if (!run)
          throw new ToolError(`There is no run ${quoted(run_id)}. Call swarm_status without run_id for the ones there are.`);
        return asData(describeRun(run));
      },
    }),
  ];
}

/** A check with how it ended, why if it did not simply pass, and what it proves. */
function checkLine(check: CheckEvidence): string {
  const { words } = showState({ kind: "check", check });
  const why = check.why ? ` (${oneLine(check.why, 300)})` : "";
  const worth = check.bound && isProof(check) ? "; it notices broken code" : "";
  return `  ${markOf({ kind: "check", check })} ${named(check.command, 200)}: ${words}${why}${worth}`;
}

/** A run in a few lines: its status, what was not approved, where the result is, and its notes. */
export function describeRun(run: Run): string {
  const phases = run.phases
    .map(
      ({ name, status, reason }) =>
        `${warning({ kind: "phase", status })}${name} ${status}${status === "skipped" && reason ? ` (${oneLine(reason, 300)})` : ""}`,
    )
    .join(", ");
  const uses = modelUses(run);
  const models = uses.map(({ model, agents }) => `${named(model)} (${agents.map((agent) => named(agent)).join(", ")})`);
  const instead = [...describeSubstitutes(run.models), ...otherNames(uses, run.models)].map((each) => `  ${each}`);
  const streams = run.streams.map(
    ({ number, status, task, reason }) =>
      `  ${markOf({ kind: "stream", status })} ${number}. ${status}: ${firstLine(task)}${reason ? ` (${oneLine(reason, 500)})` : ""}`,
  );
  const open = run.loops
    .filter(({ outcome }) => outcome !== "approved" && outcome !== "skipped")
    .map(
      ({ key, outcome, findings }) =>
        `  ${markOf({ kind: "review", outcome })} ${key}: ${outcome}${findings ? `: ${firstLine(findings)}` : ""}`,
    );
  const onResult = run.evidence.filter(({ tree }) => tree === run.tree);
  const checks = [...new Map(onResult.map((check) => [`${check.name}\n${check.command}`, check])).values()].map(checkLine);
  const { status, outcome, waitsFor } = run;
  const shown = showState({ kind: "run", status, outcome, waitsFor });
  return [
    `${shown.mark} Run ${run.id}: ${status === "running" ? shown.words : status}${run.outcome && run.outcome !== run.status ? `, ${run.outcome}` : ""}${run.reason ? ` (${oneLine(run.reason, 1_000)})` : ""}`,
    ...(waitsFor ? [formatWaits(waitsFor)] : []),
    `Issue: ${firstLine(run.issue)}`,
    ...(phases ? [`Phases: ${phases}`] : []),
    ...(models.length + instead.length > 0 ? [`Models: ${models.join(", ")}`.trim(), ...instead] : []),
    ...(streams.length > 0 ? ["Streams:", ...streams] : []),
    ...(open.length > 0 ? ["Not approved:", ...open] : []),
    ...(checks.length > 0 ? ["Checks of the result:", ...checks] : []),
    ...(run.branch ? [`Branch: ${named(run.branch)}${run.applied ? " (applied)" : ""}`] : []),
    ...(run.repositories.length > 0
      ? [
          `Repositories, in the order to merge them: ${run.repositories.map(({ projectPath }) => named(projectPath, 1_000)).join(", ")}`,
        ]
      : []),
    ...(run.documents ? [`Documents: ${named(run.documents, 1_000)}`] : []),
    ...(run.notes.length > 0 ? ["Notes:", ...run.notes.map((note) => indented(note.trim(), "    ").slice(2))] : []),
    `Tokens: ${run.usage.inputTokens} in, ${run.usage.outputTokens} out, ${run.usage.calls} calls`,
  ].join("\n");
}

/** In a list of words, only problems get a mark. */
function warning(of: Stateful): string {
  const { mark, tone } = showState(of);
  return tone === "bad" || tone === "doubt" ? `${mark} ` : "";
}

const markOf = (of: Stateful) => showState(of).mark;

/** A state with its mark. */
export function stateOf(of: Stateful): string {
  const { mark, words } = showState(of);
  return `${mark} ${words}`;
}

function firstLine(text: string): string {
  return oneLine(text.trim().split("\n", 1)[0] ?? "", 120);
}
