import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Document, LineCounter, parseDocument } from "yaml";
import { messageOf, usageError } from "../../lib/errors.ts";
import { readPlainAt, tellAbsent } from "../../lib/pinned/read.ts";
import { realOf } from "../../lib/real-path.ts";
import { type Agent, type AgentPlaces, inside } from "./agents.ts";
import { lineOf, type Report, spell } from "./file-places.ts";
import type { DeclaredKind } from "./kind.ts";
import { explain, type Problem, WrongPipeline } from "./problems.ts";
import { DEFAULT_MODELS, pipelineSchema, type ResolvedPipeline } from "./schema.ts";
import { checkSense } from "./sense.ts";

export const FILE_NAME = "swarm.config.yaml";
/** Far longer than anybody writes one. */
const MAX_FILE_BYTES = 1_000_000;

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

/** How a pipeline file is read. */
export interface Reading {
  /** The kinds of phases that the file may name, in the order they have to stand in. */
  kinds: readonly DeclaredKind[];
  /** Where agents are looked for. */
  places: AgentPlaces;
  /** The project whose own file it is, out of which no link may lead. */
  within?: string;
  /** Models named by the environment, which win over the file's. */
  models?: Models;
}

/** The pipeline file of a repository: its own at the root, else the one that ships with us. */
export function findPipelineFile(root: string, shipped: string): string {
  const own = join(root, FILE_NAME);
  return existsSync(own) ? own : shipped;
}

/** Reads a pipeline file and the agents it names. Throws one usage error that lists everything wrong with it. */
export function loadPipeline(path: string, reading: Reading): LoadedPipeline {
  const read = readPipeline(textOf(path, reading.within), reading);
  if ("problems" in read) throw new WrongPipeline(path, read.problems);
  return { path, ...read };
}

/** The text of a pipeline file. A link is followed only where it leads to a file of the same project, or a person named it. */
function textOf(path: string, within: string | undefined): string {
  const real = realOf(path);
  if (within !== undefined && !inside(realOf(within), real))
    throw usageError(`${path}: is a link that leads out of the project to ${real}. Put the file itself there.`);
  const read = readPlainAt(real, MAX_FILE_BYTES);
  if ("bytes" in read) return read.bytes.toString("utf8");
  throw usageError(`${path}: cannot be read: it ${tellAbsent(read.absent)}. Name a pipeline file that is there.`);
}

/** Checks the text of a pipeline file: every error at once, in the order of the file. */
export function readPipeline(
  text: string,
  { kinds, places, models = {} }: Reading,
): Omit<LoadedPipeline, "path"> | { problems: Problem[]; notes: string[] } {
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false });
  const content = contentOf(document, counter);
  if ("problems" in content) return { ...content, notes: [] };

  const { raw } = content;
  const problems: Problem[] = [];
  const report: Report = (path, message, key) => {
    const place = key === undefined ? path : [...path, key];
    problems.push({ line: lineOf(document.contents, counter, place), path: spell(place), message });
  };
  const schema = pipelineSchema(kinds);
  const parsed = schema.safeParse(raw);
  for (const issue of parsed.error?.issues ?? []) explain(issue, { raw, pipeline: schema, kinds }, report);
  const { agents, notes } = checkSense(raw, kinds, places, report);
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

/** The content of a YAML document, if it can be a pipeline at all. */
function contentOf(document: Document.Parsed, counter: LineCounter): { raw: object } | { problems: Problem[] } {
  const wrong = (message: string, line = 1): Problem => ({ line, path: "(file)", message });
  if (document.errors.length > 0) {
    return {
      problems: document.errors.map((error) => wrong(`is not valid YAML: ${error.message}`, counter.linePos(error.pos[0]).line)),
    };
  }
  let raw: unknown;
  try {
    raw = document.toJS({ maxAliasCount: 50 });
  } catch (error) {
    return { problems: [wrong(`cannot be read: ${messageOf(error)}`)] };
  }
  if (typeof raw === "object" && raw !== null && !Array.isArray(raw)) return { raw };
  const found = raw === null || raw === undefined ? "an empty file" : Array.isArray(raw) ? "a list" : JSON.stringify(raw);
  return { problems: [wrong(`must hold "agents" and "pipeline"; found ${found}`)] };
}
