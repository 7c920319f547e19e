import { existsSync } from "node:fs";
import { join } from "node:path";
import { createBreath } from "../../lib/breath.ts";
import { usageError } from "../../lib/errors.ts";
import { readPlainAt, tellAbsent } from "../../lib/pinned/read.ts";
import { quoted } from "../../lib/quoted.ts";
import { realOf } from "../../lib/real-path.ts";
import { readYaml } from "../../lib/yaml.ts";
import type { YamlRead } from "../../lib/yaml-parse.ts";
import { type Agent, type AgentPlaces, inside } from "./agents.ts";
import { completePhases } from "./complete.ts";
import { lineOf, type Report, spell } from "./file-places.ts";
import type { DeclaredKind } from "./kind.ts";
import { withoutNulls } from "./nulls.ts";
import { explain, type Problem, WrongPipeline } from "./problems.ts";
import { DEFAULT_MODELS, type Pipeline, pipelineSchema, placed, type ResolvedPipeline } from "./schema.ts";
import { VARIABLES } from "./settings.ts";
import { checkWriting, validateReferences } from "./validate-references.ts";

export const FILE_NAME = "swarm.config.yaml";
/** Far longer than anybody writes one. */
const MAX_FILE_BYTES = 1_000_000;

export interface LoadedPipeline {
  /** The file it came from. */
  path: string;
  pipeline: ResolvedPipeline;
  /** What named the models. */
  namedBy: Record<ModelKey, NamedBy>;
  agents: ReadonlyMap<string, Agent>;
  notes: string[];
}

/** The keys that name a pipeline-wide model. */
export const MODEL_KEYS = ["primaryModel", "reviewModel", "fastModel"] as const;
export type ModelKey = (typeof MODEL_KEYS)[number];

/** The environment, a line of the file, or nothing. */
export type NamedBy = { by: "environment"; variable: string } | { by: "file"; line: number } | { by: "default" };

export interface Models {
  primaryModel?: string | undefined;
  reviewModel?: string | undefined;
}

/** How to read a pipeline file. */
export interface Reading {
  /** The kinds of phases that the file may name. */
  kinds: readonly DeclaredKind[];
  /** Where to search for agents. */
  places: AgentPlaces;
  /** The project whose own file it is; no link may lead out of it. */
  within?: string;
  /** Models named by the environment, which override the file's. */
  models?: Models;
}

/** A repository's pipeline file: its own at the root, else the one that ships with us. */
export function findPipelineFile(root: string, shipped: string): string {
  const own = join(root, FILE_NAME);
  return existsSync(own) ? own : shipped;
}

/** Reads a pipeline file and the agents it names. Throws one usage error that lists everything wrong with it. */
export async function loadPipeline(path: string, reading: Reading): Promise<LoadedPipeline> {
  const read = await readPipeline(textOf(path, reading.within), reading);
  if ("problems" in read) throw new WrongPipeline(path, read.problems);
  return { path, ...read };
}

/** The text of a pipeline file. A link must lead to a file of the same project, unless a person named the file. */
function textOf(path: string, within: string | undefined): string {
  const real = realOf(path);
  if (within !== undefined && !inside(realOf(within), real))
    throw usageError(`${path}: is a link that leads out of the project to ${real}. Put the file itself there.`);
  const read = readPlainAt(real, MAX_FILE_BYTES);
  if ("bytes" in read) return read.bytes.toString("utf8");
  throw usageError(`${path}: cannot be read: it ${tellAbsent(read.absent)}. Name a pipeline file that is there.`);
}

/** Checks the text of a pipeline file: every error at once, in the order of the file. */
export async function readPipeline(
  text: string,
  { kinds, places, models = {} }: Reading,
): Promise<Omit<LoadedPipeline, "path"> | { problems: Problem[]; notes: string[] }> {
  const breathe = createBreath();
  const content = contentOf(await readYaml(text));
  if ("problems" in content) return { ...content, notes: [] };
  await breathe();

  const { lines } = content;
  const schema = pipelineSchema(kinds);
  const { raw, notes: filledIn } = completePhases(withoutNulls(content.raw, schema, kinds), content.raw, kinds);
  const problems: Problem[] = [];
  const report: Report = (path, message, key) => {
    const place = key === undefined ? path : [...path, key];
    problems.push({ line: lineOf(lines, place), path: spell(place), message });
  };
  const parsed = schema.safeParse(raw);
  await breathe();
  for (const issue of parsed.error?.issues ?? []) explain(issue, { raw, pipeline: schema, kinds }, report);
  const { agents, notes: aboutAgents } = validateReferences(raw, kinds, places, report);
  const notes = [...filledIn, ...aboutAgents];
  await breathe();
  if (parsed.success) checkWriting(parsed.data.pipeline, kinds, agents, report);
  if (parsed.data?.checks && parsed.data.verify) report(["verify"], '"checks" lists the commands already; keep one of the two');
  if (!parsed.success || problems.length > 0) return { problems: problems.sort((a, b) => a.line - b.line), notes };
  const namedBy = (key: ModelKey): NamedBy => {
    if (key !== "fastModel" && models[key] !== undefined) return { by: "environment", variable: VARIABLES[key] };
    if (parsed.data[key] === undefined) return { by: "default" };
    return { by: "file", line: lineOf(lines, [key]) };
  };
  const { verify, pipeline: phases, ...rest } = parsed.data;
  const checks = rest.checks ?? commandsOf(verify);
  const pipeline: ResolvedPipeline = {
    ...rest,
    pipeline: placed(phases),
    ...(checks && { checks }),
    primaryModel: models.primaryModel ?? parsed.data.primaryModel ?? DEFAULT_MODELS.primaryModel,
    reviewModel: models.reviewModel ?? parsed.data.reviewModel ?? DEFAULT_MODELS.reviewModel,
  };
  return {
    pipeline,
    namedBy: { primaryModel: namedBy("primaryModel"), reviewModel: namedBy("reviewModel"), fastModel: namedBy("fastModel") },
    agents,
    notes,
  };
}

/** The checks of a file that names them by purpose, the most helpful order first. */
function commandsOf(verify: Pipeline["verify"]): string[] | undefined {
  const commands = [verify?.build, verify?.lint, verify?.test].filter((command) => command !== undefined);
  return commands.length === 0 ? undefined : commands;
}

/** The content of a YAML text, if it can be a pipeline at all. */
function contentOf(read: YamlRead): { raw: object; lines: ReadonlyMap<string, number> } | { problems: Problem[] } {
  const wrong = (message: string, line = 1): Problem => ({ line, path: "(file)", message });
  if ("problems" in read) return { problems: read.problems.map(({ line, message }) => wrong(message, line)) };
  const { value: raw, lines } = read;
  if (typeof raw === "object" && raw !== null && !Array.isArray(raw)) return { raw, lines };
  const found = raw === null || raw === undefined ? "an empty file" : Array.isArray(raw) ? "a list" : quoted(String(raw), 80);
  return { problems: [wrong(`must hold "agents" and "pipeline"; found ${found}`)] };
}
