import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { isMap, isNode, isScalar, LineCounter, parseDocument } from "yaml";
import type { z } from "zod";
import { nearest } from "../../lib/config.ts";
import { codeOf, ExitCode, UserError, usageError } from "../../lib/errors.ts";
import { type Agent, type AgentPlaces, agentsThere, BUILTIN, findAgent } from "./agents.ts";
import { CONDITIONS, DEFAULT_MODELS, PHASE_NAMES, PHASES, Pipeline, Qa, type ResolvedPipeline, Review } from "./schema.ts";

export const FILE_NAME = "swarm.config.yaml";

/** One thing wrong with a pipeline file, and where. */
export interface Problem {
  line: number;
  /** The place in the file, such as `pipeline[2].reviews[0].agent`. */
  path: string;
  message: string;
}

export interface LoadedPipeline {
  /** The file it came from. */
  path: string;
  pipeline: ResolvedPipeline;
  /** Who named the two models. */
  namedBy: Record<keyof Models, NamedBy>;
  agents: ReadonlyMap<string, Agent>;
  notes: string[];
}

/** The environment, a line of the file, or nobody. */
export type NamedBy = { by: "environment" } | { by: "file"; line: number } | { by: "default" };

export interface Models {
  primaryModel?: string | undefined;
  reviewModel?: string | undefined;
}

/** The pipeline file of a repository: its own at the root, else the one that ships with us. */
export function findPipelineFile(root: string, shipped: string): string {
  const own = join(root, FILE_NAME);
  return existsSync(own) ? own : shipped;
}

/** A pipeline file that cannot be run, with everything that is wrong with it. */
export class WrongPipeline extends UserError {
  readonly problems: readonly Problem[];
  constructor(path: string, problems: readonly Problem[]) {
    super(describeProblems(path, problems), { exitCode: ExitCode.usage });
    this.problems = problems;
  }
}

/** Reads a pipeline file whole, with the agents it names. Throws one usage error that lists everything wrong with it. */
export function loadPipeline(path: string, places: AgentPlaces, models: Models = {}): LoadedPipeline {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw usageError(`${path}: cannot be read (${codeOf(error) ?? error}). Name a pipeline file that is there.`, error);
  }
  const read = readPipeline(text, places, models);
  if ("problems" in read) throw new WrongPipeline(path, read.problems);
  return { path, ...read };
}

export function describeProblems(path: string, problems: readonly Problem[]): string {
  const name = basename(path);
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  return [
    `${path}: ${count}, nothing was started.`,
    ...problems.map((each) => `  ${name}:${each.line}: ${each.path}: ${each.message}`),
  ].join("\n");
}

/** Checks the text of a pipeline file: every error at once, in the order of the file. */
export function readPipeline(
  text: string,
  places: AgentPlaces,
  models: Models = {},
): Omit<LoadedPipeline, "path"> | { problems: Problem[]; notes: string[] } {
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false });
  if (document.errors.length > 0) {
    return {
      problems: document.errors.map((error) => ({
        line: counter.linePos(error.pos[0]).line,
        path: "(file)",
        message: `is not valid YAML: ${error.message}`,
      })),
      notes: [],
    };
  }
  let raw: unknown;
  try {
    raw = document.toJS({ maxAliasCount: 50 });
  } catch (error) {
    return {
      problems: [{ line: 1, path: "(file)", message: `cannot be read: ${error instanceof Error ? error.message : error}` }],
      notes: [],
    };
  }
  if (typeof raw !== "object" || raw === null || Array.isArray(raw)) {
    const found = raw === null || raw === undefined ? "an empty file" : Array.isArray(raw) ? "a list" : JSON.stringify(raw);
    return { problems: [{ line: 1, path: "(file)", message: `must hold "agents" and "pipeline"; found ${found}` }], notes: [] };
  }

  const problems: Problem[] = [];
  const report = (path: Path, message: string, key?: string) =>
    problems.push({
      line: lineOf(document.contents, counter, key === undefined ? path : [...path, key]),
      path: spell(key === undefined ? path : [...path, key]),
      message,
    });
  const parsed = Pipeline.safeParse(raw);
  for (const issue of parsed.success ? [] : parsed.error.issues) explain(issue, raw, report);
  const { agents, notes } = checkSense(raw, places, report);
  if (!parsed.success || problems.length > 0) return { problems: problems.sort((a, b) => a.line - b.line), notes };
  const namedBy = (key: keyof Models): NamedBy => {
    if (models[key] !== undefined) return { by: "environment" };
    if (parsed.data[key] === undefined) return { by: "default" };
    return { by: "file", line: lineOf(document.contents, counter, [key]) };
  };
  const pipeline: ResolvedPipeline = {
    ...parsed.data,
    primaryModel: models.primaryModel ?? parsed.data.primaryModel ?? DEFAULT_MODELS.primaryModel,
    reviewModel: models.reviewModel ?? parsed.data.reviewModel ?? DEFAULT_MODELS.reviewModel,
  };
  return {
    pipeline,
    namedBy: { primaryModel: namedBy("primaryModel"), reviewModel: namedBy("reviewModel") },
    agents,
    notes,
  };
}

type Path = readonly (string | number)[];
type Report = (path: Path, message: string, key?: string) => void;

function explain(issue: z.core.$ZodIssue, raw: unknown, report: Report): void {
  const path = issue.path.filter((part) => typeof part !== "symbol");
  const found = show(valueAt(raw, path));
  const name = path.at(-1);
  if (issue.code === "unrecognized_keys") {
    const known = knownKeys(path, raw);
    for (const key of issue.keys) report(path, `there is no such key.${hint(key, known)}`, key);
  } else if (name === "phase" && path.length === 3) {
    report(path, `${found} is no phase.${hint(String(valueAt(raw, path)), PHASE_NAMES)}`);
  } else if (name === "condition") {
    report(path, `${found} is no condition.${hint(String(valueAt(raw, path)), CONDITIONS)}`);
  } else if (issue.code === "invalid_key") {
    report(path, `${JSON.stringify(String(name))} is no name for an agent: letters, digits, dashes and underscores only`);
  } else if (valueAt(raw, path) === undefined) {
    report(path.slice(0, -1), `"${name}" is missing: ${issue.message}`);
  } else {
    report(path, `found ${found}: ${issue.message}`);
  }
}

function hint(typed: string, known: readonly string[]): string {
  const near = nearest(typed, known);
  return near ? ` Did you mean "${near}"?` : ` There are: ${known.join(", ")}.`;
}

function knownKeys(path: Path, raw: unknown): string[] {
  if (path.length === 0) return Object.keys(Pipeline.shape);
  const last = path.at(-1);
  if (last === "qa") return Object.keys(Qa.shape);
  if (path.length >= 4) return Object.keys(Review.shape);
  const phase = valueAt(raw, [...path, "phase"]);
  return Object.entries(PHASES).flatMap(([name, schema]) => (name === phase ? Object.keys(schema.shape) : []));
}

/** What no type can say: agents that exist, phases in an order that works, keywords that can be told apart. */
function checkSense(raw: object, places: AgentPlaces, report: Report): { agents: Map<string, Agent>; notes: string[] } {
  const agents = new Map<string, Agent>();
  const notes: string[] = [];
  const bad = new Set<string>();
  const declared = valueAt(raw, ["agents"]);
  const sources = new Map<string, string>(
    isRecord(declared)
      ? Object.entries(declared).flatMap(([name, source]) => (typeof source === "string" ? [[name, source] as const] : []))
      : [],
  );
  for (const [name, source] of sources) {
    if (source.trim() === "") continue;
    const found = findAgent(name, source.trim(), places);
    if ("problem" in found) {
      bad.add(name);
      report(["agents", name], `${source.startsWith(BUILTIN) ? `"${source}": ` : ""}${found.problem}`);
    } else if ("unseen" in found) {
      bad.add(name);
      notes.push(`agents.${name}: ${found.unseen}`);
    } else {
      agents.set(name, found.agent);
      notes.push(...found.notes);
    }
  }
  const refer = (path: Path) => {
    const name = valueAt(raw, path);
    if (typeof name !== "string" || !/^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name) || agents.has(name) || bad.has(name)) return;
    if (isRecord(declared) && Object.hasOwn(declared, name)) return;
    const found = findAgent(name, undefined, places);
    if ("problem" in found) {
      const near = nearest(name, [...sources.keys(), ...agentsThere(places)]);
      report(
        path,
        `no agent is called "${name}".${near ? ` Did you mean "${near}"?` : ""} It is not under "agents", and ${found.problem}`,
      );
    } else if ("agent" in found) {
      agents.set(name, found.agent);
      notes.push(...found.notes);
    }
  };

  const phases = valueAt(raw, ["pipeline"]);
  const seen: string[] = [];
  for (const [index, phase] of (Array.isArray(phases) ? phases : []).entries()) {
    if (!isRecord(phase)) continue;
    const at: Path = ["pipeline", index];
    for (const key of ["agent", "fixAgent", "clarificationAgent"]) if (key in phase) refer([...at, key]);
    if ("clarificationKeyword" in phase && !("clarificationAgent" in phase)) {
      report([...at, "clarificationKeyword"], 'nobody answers: name a "clarificationAgent" too');
    }
    const kind = typeof phase.phase === "string" ? phase.phase : "";
    if (seen.includes(kind)) report([...at, "phase"], `"${kind}" is there twice; a phase runs once`);
    const later = PHASE_NAMES.filter((name, place) => place > PHASE_NAMES.indexOf(kind as never) && seen.includes(name));
    if (PHASE_NAMES.includes(kind as never) && later.length > 0)
      report([...at, "phase"], `"${kind}" must stand before "${later[0]}"`);
    if (phase.condition === "hasFrontendTasks" && !seen.includes("decompose")) {
      report([...at, "condition"], '"hasFrontendTasks" needs a "decompose" phase before it');
    }
    if (kind === "cross-model-review" && !seen.includes("implement")) {
      report([...at, "phase"], '"cross-model-review" needs an "implement" phase before it');
    }
    seen.push(kind);
    for (const [place, review] of (Array.isArray(phase.reviews) ? phase.reviews : []).entries()) {
      if (isRecord(review)) checkReview([...at, "reviews", place], review, refer, report);
    }
    if (isRecord(phase.qa)) checkReview([...at, "qa"], phase.qa, refer, report);
  }
  return { agents, notes };
}

function checkReview(at: Path, review: Record<string, unknown>, refer: (path: Path) => void, report: Report): void {
  for (const key of ["agent", "clarificationAgent"]) if (key in review) refer([...at, key]);
  const { approvalKeyword, clarificationKeyword } = review;
  if (typeof clarificationKeyword !== "string") return;
  if (!("clarificationAgent" in review))
    report([...at, "clarificationKeyword"], 'nobody answers: name a "clarificationAgent" too');
  if (typeof approvalKeyword === "string" && approvalKeyword.toLowerCase() === clarificationKeyword.toLowerCase()) {
    report([...at, "clarificationKeyword"], `"${clarificationKeyword}" is the approval keyword too; a reply could mean both`);
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function valueAt(raw: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, part) => {
    if (Array.isArray(value)) return typeof part === "number" ? value[part] : undefined;
    return isRecord(value) && Object.hasOwn(value, part) ? value[part] : undefined;
  }, raw);
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

function spell(path: Path): string {
  return (
    path.map((part, index) => (typeof part === "number" ? `[${part}]` : index === 0 ? part : `.${part}`)).join("") || "(file)"
  );
}

/** The line a place of the file stands on; of a missing one, its nearest holder. */
function lineOf(root: unknown, counter: LineCounter, path: Path): number {
  let node: unknown = root;
  let offset = isNode(root) ? (root.range?.[0] ?? 0) : 0;
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(part));
      if (!pair) break;
      if (isNode(pair.key)) offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (typeof part === "number" && isNode(node) && "items" in node && Array.isArray(node.items)) {
      node = node.items[part];
      if (isNode(node)) offset = node.range?.[0] ?? offset;
    } else break;
  }
  return counter.linePos(offset).line;
}
