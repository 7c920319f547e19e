import { appendFileSync, mkdirSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeFileAtomic } from "../../lib/atomic.ts";
import { codeOf, UserError } from "../../lib/errors.ts";
import type { Run } from "../../protocol/runs.ts";
import { inside } from "../pipeline/agents.ts";
import type { ResolvedPipeline } from "../pipeline/schema.ts";
import { describeEvidence, passed } from "../streams/checks.ts";
import { currentEvidence } from "./current-evidence.ts";
import { modelUses, otherNames, standIns } from "./served.ts";

/** The files of a run: in the checkout for the user, and copies under the run. */
export interface Documents {
  /** `about` is told beside the time. */
  write(name: string, title: string, body: string, about?: string): void;
  /** Takes a document out of the checkout that has served its purpose. */
  remove(name: string): void;
}

export interface DocumentsDeps {
  projectPath: string;
  docDir: string;
  /** The run's own folder, if copies are kept. */
  folder?: string;
  now: () => Date;
}

export function openDocuments({ projectPath, docDir, folder, now }: DocumentsDeps): Documents {
  openDocDir(projectPath, docDir);
  const copies = folder === undefined ? undefined : join(folder, "documents");
  if (copies) mkdirSync(copies, { recursive: true, mode: 0o700 });
  return {
    write(name, title, body, about = "") {
      const head = [now().toISOString(), about].filter(Boolean).join(" · ");
      const text = `# ${title}\n\n_${head}_\n\n${body.trim()}\n`;
      // A run is long: somebody may have cleaned the checkout, and the folder with it, since the last document.
      writeFileAtomic(join(openDocDir(projectPath, docDir), name), text, 0o644);
      if (copies) replace(join(copies, name), text);
    },
    remove: (name) => rmSync(join(openDocDir(projectPath, docDir), name), { force: true }),
  };
}

/** The copy needs no wait for the disk: the journal can tell all of it again. */
function replace(path: string, text: string): void {
  writeFileSync(`${path}.tmp`, text, { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
}

/** Makes the documents' folder; it has to be inside the project, wherever links lead. */
function openDocDir(projectPath: string, docDir: string): string {
  const path = join(projectPath, docDir);
  try {
    mkdirSync(path, { recursive: true });
  } catch (error) {
    throw new UserError(`DOC_DIR: ${path} cannot be made (${codeOf(error) ?? error}).`, { cause: error });
  }
  if (!inside(realpathSync(projectPath), realpathSync(path))) {
    throw new UserError(`DOC_DIR: ${path} leads out of the project to ${realpathSync(path)}. Name a folder inside it.`);
  }
  return path;
}

/** The names of all files a run may write, as patterns relative to the project. */
export function documentNames(pipeline: ResolvedPipeline, docDir: string, summaryFileName: string): string[] {
  const agents = pipeline.pipeline.map((phase) => phase.agent);
  const names = [
    ...agents.flatMap((agent) => [`${agent}.md`, `${agent}-tasks.md`, `${agent}-stream-*.md`]),
    "cross-model-review.md",
    "plan.md",
    "plan-draft.md",
    summaryFileName,
  ];
  return [...new Set(names)].map((name) => join(docDir, name));
}

/** A run in a page: how it ended, what stood against it, what was really run, what it cost, and where it is. */
export function summaryOf(run: Run): string {
  const result = run.branch
    ? `Branch \`${run.branch}\`${run.applied ? ", merged into the checkout" : ""}`
    : "In place, in the checkout";
  const final = currentEvidence(run, run.tree);
  const parts = [
    `**Outcome: ${run.outcome ?? run.status}**${run.reason ? `: ${run.reason}` : ""}`,
    `Run \`${run.id}\` · ${result}${run.tree ? ` · tree \`${run.tree.slice(0, 12)}\`` : ""}`,
    `${run.usage.calls} model calls · ${run.usage.inputTokens} tokens in (${run.usage.cacheReadTokens} from cache) · ${run.usage.outputTokens} tokens out`,
    modelsOf(run),
    `## Phases\n\n${rows([["phase", "status", "why"], ["---", "---", "---"], ...run.phases.map((each) => [each.name, each.status, each.reason ?? ""])])}`,
    run.streams.length > 0
      ? `## Streams\n\n${rows([["stream", "task", "status", "why"], ["---", "---", "---", "---"], ...run.streams.map((each) => [String(each.number), `${each.taskId}: ${each.task.split("\n")[0]}`, `${each.status}${each.merged ? ", merged" : ""}`, each.reason ?? ""])])}`
      : "",
    run.loops.length > 0
      ? `## Review loops\n\n${rows([
          ["loop", "outcome", "reviews", "revisions", "approved state", "what stands against it"],
          ["---", "---", "---", "---", "---", "---"],
          ...run.loops.map((each) => [
            each.key,
            each.outcome,
            String(each.reviews),
            String(each.revisions),
            each.approved?.slice(0, 12) ?? "",
            (each.findings ?? "").slice(0, 300),
          ]),
        ])}`
      : "",
    `## CheckEvidence on the result\n\n${final.length > 0 ? `${passed(final) ? "Every check passed." : "**A check fails.**"}\n\n${describeEvidence(final)}` : "No checks were found in this project, so none were run."}`,
    run.decisions.length > 0 ? `## Decisions\n\n${run.decisions.map((each) => `- ${each}`).join("\n")}` : "",
    run.notes.length > 0 ? `## Notes\n\n${run.notes.map((each) => `- ${each}`).join("\n")}` : "",
  ];
  return parts.filter(Boolean).join("\n\n");
}

function modelsOf(run: Run): string {
  const uses = modelUses(run);
  const told = [...standIns(run.models), ...otherNames(uses, run.models)].map((each) => `- ${each}`);
  if (uses.length === 0 && told.length === 0) return "";
  const table = rows([
    ["model", "asked for as", "agents", "calls"],
    ["---", "---", "---", "---"],
    ...uses.map(({ model, asked, agents, calls }) => [model, asked ?? model, agents.join(", "), String(calls)]),
  ]);
  return ["## Models", told.join("\n"), uses.length > 0 ? table : ""].filter(Boolean).join("\n\n");
}

function rows(cells: string[][]): string {
  return cells.map((row) => `| ${row.map(cell).join(" | ")} |`).join("\n");
}

function cell(text: string): string {
  return text.replace(/\s+/g, " ").replaceAll("|", "\\|").trim();
}

/** Shows the summary on the page of a GitHub job, where there is one. */
export function writeStepSummary(path: string | undefined, text: string): void {
  if (!path) return;
  try {
    appendFileSync(path, `${text}\n`);
  } catch (error) {
    // The summary is in the documents too; a page that cannot be written is no reason to fail the run.
    if (codeOf(error) === undefined) throw error;
  }
}
