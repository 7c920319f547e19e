import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { codeOf, UserError } from "../../lib/errors.ts";
import { type Folder, makeFolder } from "../../lib/pinned/folder.ts";
import { removeFile, replaceFile } from "../../lib/pinned/write.ts";
import { indented, oneLine } from "../../lib/quoted.ts";
import { realOf } from "../../lib/real-path.ts";
import { checksInShort } from "../../protocol/check-words.ts";
import type { Run, RunOutcome } from "../../protocol/runs.ts";
import { describeSubstitutes, modelUses, otherNames } from "../agents/served.ts";
import { describeEvidence, fence } from "../checks/checks.ts";
import { inside } from "../pipeline/agents.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { currentEvidence } from "../steps/current-evidence.ts";

/** The files of a run: in the checkout for the user, with copies in the run's folder. */
export interface Documents {
  /**
   * `about` is shown next to the time. If the run keeps copies, this does not flush to disk: after a crash the resumed run writes
   * the documents of its phases again.
   */
  write(name: string, title: string, body: string, about?: string): void;
  /** Writes a document that a resumed run would not write again; flushed to disk. */
  writeLast(name: string, title: string, body: string): void;
  /** Removes a document that is no longer needed from the checkout. */
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
  const inDocDir = <T>(work: (open: Folder) => T): T => within(openDocDir(projectPath, docDir), work);
  inDocDir(() => undefined);
  const copies = folder === undefined ? undefined : join(realOf(folder), "documents");
  const write = (name: string, title: string, body: string, { about = "", durable }: { about?: string; durable: boolean }) => {
    const head = [now().toISOString(), about].filter(Boolean).join(" · ");
    const text = `# ${title}\n\n_${head}_\n\n${body.trim()}\n`;
    // A run is long: somebody may have deleted the folder since the last document.
    inDocDir((open) => replaceFile(open, name, text, { mode: 0o644, durable }));
    // Need not be flushed: the journal has everything in the copy too.
    if (copies) within(makeFolder(copies), (open) => replaceFile(open, name, text, { durable: false }));
  };
  return {
    write: (name, title, body, about = "") => write(name, title, body, { about, durable: copies === undefined }),
    writeLast: (name, title, body) => write(name, title, body, { durable: true }),
    remove: (name) => void inDocDir((open) => removeFile(open, name)),
  };
}

function within<T>(folder: Folder, work: (folder: Folder) => T): T {
  try {
    return work(folder);
  } finally {
    folder.close();
  }
}

/** Opens the folder for documents, which must really be inside the project, whatever links lead to it. */
function openDocDir(projectPath: string, docDir: string): Folder {
  const root = realOf(projectPath);
  const path = join(root, docDir);
  const real = realOf(path);
  if (!inside(root, real)) throw new UserError(`DOC_DIR: ${path} leads out of the project to ${real}. Name a folder inside it.`);
  try {
    return makeFolder(real, 0o777);
  } catch (error) {
    if (codeOf(error) === "ELOOP")
      throw new UserError(`DOC_DIR: ${path} became a link just now. Name a folder inside the project that stays one.`, {
        cause: error,
      });
    throw new UserError(`DOC_DIR: ${path} cannot be made (${codeOf(error) ?? error}).`, { cause: error });
  }
}

/** The documents that planning writes. */
export const PLAN = "plan.md";
export const PLAN_DRAFT = "plan-draft.md";

/** All files that a run or its planning may write, as patterns relative to the project. */
export function documentNames(
  ofPhases: readonly string[],
  { docDir, summaryFileName }: Pick<RunSettings, "docDir" | "summaryFileName">,
): string[] {
  return [...new Set([...ofPhases, PLAN, PLAN_DRAFT, summaryFileName])].map((name) => join(docDir, name));
}

const MOST_OF_ISSUE = 4_000;

/** A run on one page: how it ended and why, which checks ran, what it cost, and where the result is. */
export function summaryOf(run: Run, changes = ""): string {
  const result = run.branch
    ? `Branch \`${run.branch}\`${run.applied ? ", merged into the checkout" : ""}`
    : "In place, in the checkout";
  const final = currentEvidence(run, run.tree);
  const parts = [
    `**Outcome: ${run.outcome ?? run.status}**${run.reason ? `: ${oneLine(run.reason, 2_000)}` : ""}`,
    `Run \`${run.id}\` · ${result}${run.base ? ` · from \`${run.base.slice(0, 12)}\`` : ""}${run.tree ? ` · tree \`${run.tree.slice(0, 12)}\`` : ""}${took(run)}`,
    `## Issue\n\n${fence(run.issue.trim().slice(0, MOST_OF_ISSUE))}`,
    run.repositories.length > 0
      ? `## Repositories\n\nOne piece of work, to be merged in this order:\n\n${run.repositories.map(({ projectPath, base }, index) => `${index + 1}. \`${projectPath}\`, branch \`${run.branch}\`, from \`${base?.slice(0, 12)}\``).join("\n")}`
      : "",
    changes ? `## Files changed\n\n${fence(changes)}` : "",
    mergeInstructions(run),
    `${run.usage.calls} model calls · ${run.usage.inputTokens} tokens in (${run.usage.cacheReadTokens} from cache) · ${run.usage.outputTokens} tokens out`,
    modelsOf(run),
    `## Phases\n\n${rows([["phase", "status", "took", "why"], ["---", "---", "---", "---"], ...run.phases.map((each) => [each.name, each.status, lasted(each), each.reason ?? ""])])}`,
    run.streams.length > 0
      ? `## Streams\n\n${rows([["stream", "task", "status", "why"], ["---", "---", "---", "---"], ...run.streams.map((each) => [String(each.number), `${each.taskId}: ${each.task.split("\n", 1)[0]}`, `${each.status}${each.merged ? ", merged" : ""}`, each.reason ?? ""])])}`
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
    `## Evidence on the result\n\n${checksInShort(final)}${final.length > 0 ? `\n\n${describeEvidence(final)}` : ""}`,
    run.decisions.length > 0 ? `## Decisions\n\n${run.decisions.map((each) => `- ${oneLine(each, 2_000)}`).join("\n")}` : "",
    run.notes.length > 0 ? `## Notes\n\n${run.notes.map((each) => `- ${indented(each).trimStart()}`).join("\n")}` : "",
  ];
  return parts.filter(Boolean).join("\n\n");
}

/** The commands to inspect and merge a result that is on a branch of its own. */
function mergeInstructions({ id, branch, applied, status, outcome }: Run): string {
  if (branch === null || applied || outcome === "unchanged" || outcome === "cancelled") return "";
  // The branch of a failed run may hold any part of the work.
  if (status === "failed")
    return `Look at what was done so far: \`git diff ...${branch}\` · go on with it: \`swarm resume ${id}\`.`;
  const doubts: Partial<Record<RunOutcome, string>> = { approved: "", untested: " Nothing tested it: look first." };
  const doubt = (outcome && doubts[outcome]) ?? " It is not approved: look first.";
  return `Look at it: \`git diff ...${branch}\` · take it: \`git merge ${branch}\`.${doubt}`;
}

function took({ createdAt, finishedAt }: Pick<Run, "createdAt" | "finishedAt">): string {
  return ` · ${lasted({ startedAt: createdAt, finishedAt: finishedAt ?? new Date().toISOString() })}`;
}

/** A duration as people say it. */
function lasted({ startedAt, finishedAt }: { startedAt: string; finishedAt: string | null }): string {
  if (finishedAt === null) return "";
  const seconds = Math.round((Date.parse(finishedAt) - Date.parse(startedAt)) / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

function modelsOf(run: Run): string {
  const uses = modelUses(run);
  const told = [...describeSubstitutes(run.models), ...otherNames(uses, run.models)].map((each) => `- ${each}`);
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

/** Shows the summary on the page of a GitHub job, if this is one. */
export function writeStepSummary(path: string | undefined, text: string): void {
  if (!path) return;
  try {
    appendFileSync(path, `${text}\n`);
  } catch (error) {
    // The summary is among the documents too, so the run need not fail.
    if (codeOf(error) === undefined) throw error;
  }
}
