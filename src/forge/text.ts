import { basename } from "node:path";
import type { Weakening } from "../git/weakened-tests.ts";
import { oneLine } from "../lib/quoted.ts";
import { checksInShort, checkWords, isProof } from "../protocol/check-words.ts";
import type { CheckEvidence, Run } from "../protocol/runs.ts";
import type { Task } from "../protocol/squads.ts";

/** The run or task that a pull request proposes, from the store. */
export type Work = { kind: "run"; run: Run; evidence: CheckEvidence[] } | { kind: "task"; task: Task };

/** One of the pull requests of the same work. */
export interface Linked {
  projectPath: string;
  /** Whether it is the pull request that contains the text. */
  isThis: boolean;
  repo: string | null;
  number: number | null;
  url: string | null;
}

export interface TextParts {
  work: Work;
  projectPath: string;
  /** All pull requests of the same work in merge order, including this one. If there is only one, the text does not list it. */
  together: readonly Linked[];
  /** The commit subjects, newest first. */
  commits: readonly string[];
  /** The diffstat of the changed files. */
  files: string;
  /** The hash of the pushed tree. */
  tree: string;
  weakened: readonly Weakening[];
  template: string | undefined;
}

const LONGEST = 60_000;
const MOST_OF_ISSUE = 6_000;

/** The mark by which IO recognises its own text. The author proves nothing, since people let IO use their tokens. */
export const markOf = (owner: string): string => `<!-- io: ${owner} -->`;
export const isMarked = (text: string): boolean => /<!-- io: [\w-]{1,100} -->/.test(text);
/** Whether a comment is IO's own: the mark is at its end, not inside a quotation. */
export const isOwn = (text: string): boolean => /(?:^|\n)<!-- io: [\w-]{1,120} -->\s{0,10}$/.test(text);

/** The text of a pull request: what was asked, what was done, what is not proven, and the evidence. */
export function pullText(parts: TextParts): string {
  const { work, weakened, template } = parts;
  const owner = work.kind === "run" ? work.run.id : work.task.id;
  const first =
    weakened.length > 0
      ? [`## Look here first\n\nThis change takes something away from tests or CI:\n\n${weakenedList(weakened)}`]
      : [];
  const own = [asked(work), mergeOrder(parts), done(parts), notProven(parts), evidence(work), cost(work)].filter(Boolean);
  const body = template === undefined ? [...first, ...own].join("\n\n") : inTemplate(template, first, own);
  const mark = markOf(owner);
  const room = LONGEST - mark.length - 100;
  return `${body.length > room ? `${body.slice(0, room)}\n\n… cut off: it is longer than a pull request may be.` : body}\n\n${mark}\n`;
}

/**
 * Inserts IO's text into a template: below its first heading that asks for a description, or in front of it. The template
 * itself is unchanged.
 */
function inTemplate(template: string, first: readonly string[], own: readonly string[]): string {
  const lines = template.trimEnd().split("\n");
  const at = lines.findIndex((line) => /^#{1,6}\s.{0,200}\b(?:description|summary|changes?|what|overview)\b/i.test(line));
  const words = own.map((each) => each.replace(/^## /gm, "### "));
  const placed = at < 0 ? [...words, ...lines] : [...lines.slice(0, at + 1), "", words.join("\n\n"), ...lines.slice(at + 1)];
  return [...first, placed.join(at < 0 ? "\n\n" : "\n")].join("\n\n");
}

function asked(work: Work): string {
  const text = work.kind === "run" ? work.run.issue : work.task.description;
  const issues = [...new Set([...text.matchAll(/(?<![\w/&])#(\d{1,9})\b/g)].map(([, number]) => `#${number}`))].slice(0, 5);
  const named = issues.length > 0 ? `For ${issues.join(", ")}.\n\n` : "";
  return `## What was asked\n\n${named}${fenced(text.trim().slice(0, MOST_OF_ISSUE))}`;
}

/** Lists the pull requests that belong together, in the order in which to merge them. */
function mergeOrder({ together }: TextParts): string {
  if (together.length < 2) return "";
  const lines = together.map((each, index) => {
    const name = each.repo === null ? code(basename(each.projectPath)) : each.repo;
    const place = each.number === null ? `${name}: no pull request yet` : `${name}#${each.number} (${each.url})`;
    return `${index + 1}. ${each.isThis ? "this one" : place}`;
  });
  return `## Merge in this order\n\nThis is one piece of work in ${together.length} repositories:\n\n${lines.join("\n")}`;
}

function done({ commits, files }: TextParts): string {
  return `## What was done\n\n${fenced([...commits.slice(0, 20), "", files].join("\n").trim())}`;
}

/** Lists everything that a reader must not take for granted. */
function notProven({ work, projectPath, tree, weakened }: TextParts): string {
  const doubts =
    work.kind === "run"
      ? doubtsOfRun(work.run, work.evidence, { tree, projectPath })
      : doubtsOfTask(work.task, { tree, projectPath });
  if (weakened.length > 0) doubts.push("Tests or CI were changed, so that passing checks say less than before.");
  const told = doubts.length > 0 ? doubts.map((each) => `- ${oneLine(each, 1_000)}`).join("\n") : "Nothing that IO knows of.";
  return `## What is not proven\n\n${told}`;
}

function doubtsOfRun(
  run: Run,
  checks: readonly CheckEvidence[],
  { tree, projectPath }: Pick<TextParts, "tree" | "projectPath">,
): string[] {
  const seen = run.repositories.find((each) => each.projectPath === projectPath)?.tree ?? run.tree;
  const doubts: string[] = [];
  if (run.outcome !== "approved")
    doubts.push(`The run ended as \`${run.outcome ?? run.status}\`${run.reason ? `: ${code(run.reason)}` : ""}`);
  if (seen !== null && seen !== tree)
    doubts.push(
      `The branch was changed after the run: checks and reviews saw tree ${seen.slice(0, 12)}, the branch holds ${tree.slice(0, 12)}.`,
    );
  if (!checks.some(isProof)) doubts.push("No check that could notice the change came to a verdict.");
  for (const check of checks) if (!isProof(check)) doubts.push(`${code(check.name)}: ${code(checkWords(check))}`);
  for (const { agent, outcome, findings } of run.loops)
    if (outcome !== "approved")
      doubts.push(`${code(agent)} did not approve (${outcome})${findings ? `: ${code(findings)}` : ""}`);
  return doubts;
}

function doubtsOfTask({ evidence: seen }: Task, { tree, projectPath }: Pick<TextParts, "tree" | "projectPath">): string[] {
  const left = (seen?.others?.find((each) => each.projectPath === projectPath) ?? seen)?.treeAfter;
  const doubts: string[] = [];
  if (seen?.proven !== true) doubts.push(seen?.verdict ? code(seen.verdict) : "No test was seen to pass after the last change.");
  if (left && left !== tree)
    doubts.push(
      `The branch was changed after the task: what was seen is of tree ${left.slice(0, 12)}, the branch holds ${tree.slice(0, 12)}.`,
    );
  doubts.push("Nobody but the agent that wrote it has reviewed it.");
  return doubts;
}

function evidence(work: Work): string {
  if (work.kind === "task") {
    const commands = work.task.evidence?.commands ?? [];
    const rows = commands.slice(-20).map(({ command, exitCode }) => [code(command), String(exitCode ?? "ended by a signal")]);
    return `## Evidence\n\n${rows.length > 0 ? table(["command", "exit code"], rows) : "No command was run."}`;
  }
  const { run, evidence: checks } = work;
  const rows = checks.map((check) => [
    code(check.name),
    code(check.command),
    String(check.exitCode ?? check.ending),
    code(checkWords(check)),
    code(check.tree.slice(0, 12)),
  ]);
  const reviews = run.loops.map((loop) => [
    code(loop.agent),
    loop.stream === null ? loop.phase : `${loop.phase}, stream ${loop.stream}`,
    loop.outcome,
    String(loop.reviews),
    loop.approved ? code(loop.approved.slice(0, 12)) : "",
  ]);
  return [
    `## Evidence\n\n${checksInShort(checks)}`,
    rows.length > 0 ? table(["check", "command", "exit code", "verdict", "tree"], rows) : "",
    reviews.length > 0 ? table(["reviewer", "of", "verdict", "rounds", "approved state"], reviews) : "",
  ]
    .filter(Boolean)
    .join("\n\n");
}

function cost(work: Work): string {
  const { usage } = work.kind === "run" ? work.run : work.task;
  const models = work.kind === "run" ? work.run.models.map(({ model }) => model) : [work.task.model ?? ""];
  const named = [...new Set(models.filter(Boolean))].map(code).join(", ");
  const id = work.kind === "run" ? `run \`${work.run.id}\`` : `task \`${work.task.id}\``;
  return `${usage.calls} model calls, ${usage.inputTokens} tokens in, ${usage.outputTokens} tokens out${named ? `, with ${named}` : ""} · ${id}`;
}

const weakenedList = (weakened: readonly Weakening[]) =>
  weakened
    .slice(0, 30)
    .map(({ path, what }) => `- ${code(path)}: ${code(what)}`)
    .join("\n");

/** Quotes somebody's text as plain text: it mentions nobody, links to nothing and closes no issue. */
export function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}text\n${text}\n${fence}`;
}

/** Quotes somebody's text in one line, with the same guarantees as `fenced`. */
export function code(text: string): string {
  const line = oneLine(text, 300).replaceAll("`", "'").replaceAll("|", "\\|");
  return line === "" ? "" : `\`${line}\``;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");
}

/** The title in one line. */
export const titleOf = (subject: string): string => oneLine(subject, 200) || "Work of IO";
