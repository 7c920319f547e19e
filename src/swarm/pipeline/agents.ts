import { isAbsolute, join, relative, resolve } from "node:path";
import { z } from "zod";
import { nearest } from "../../home/config.ts";
import { entriesAt } from "../../lib/pinned/list.ts";
import { readPlainAt, tellAbsent } from "../../lib/pinned/read.ts";
import { oneLine } from "../../lib/quoted.ts";
import { realOf } from "../../lib/real-path.ts";
import { ruleOf } from "../../lib/validation.ts";
import { readSmallYaml } from "../../lib/yaml.ts";
import { readToolWords, splitWords, type ToolName } from "./tool-words.ts";

export type { ToolName } from "./tool-words.ts";

export const BUILTIN = "builtin:";
/** The endings of an agent's file, in search order; the second is GitHub's own. */
const ENDINGS = [".md", ".agent.md"];
/** Far longer than any instructions. */
const MAX_BYTES = 1_000_000;

/** A role of a pipeline. */
export interface Agent {
  name: string;
  instructions: string;
  path: string;
  /** Can only narrow what its duty allows. */
  tools?: ToolName[];
  /** The word that would let it change files, in the vocabulary of its own file. */
  editWord?: string;
  /** The name it is asked by; for a list of models, all of them. */
  model?: string;
  /** A list of models; the first that exists is asked. */
  modelChoices?: readonly string[];
}

export interface AgentPlaces {
  /** The repository; without one, its own agents are not searched. */
  root: string | undefined;
  /** Searched first; relative to the repository. */
  agentsDir: string;
  /** What ships with us. */
  shipped: string;
  /** The problems are read on another machine, so they must not name our folders. */
  discreet?: boolean;
}

export type AgentFound = { agent: Agent; notes: string[] } | { problem: string; missing?: true } | { unseen: string };
type AgentRead = Exclude<AgentFound, { unseen: string }>;

const Model = z.string().trim().min(1);
const FrontMatter = z.object({
  tools: z.union([z.array(z.string()), z.string()]).nullish(),
  model: z.union([z.array(Model).min(1), Model]).nullish(),
});
/** Claude Code's word for the caller's model. */
const INHERIT = "inherit";

/** Finds an agent's instructions by its source in the pipeline file, or else by its name. */
export function findAgent(name: string, source: string | undefined, places: AgentPlaces): AgentFound {
  const builtin = source === undefined ? name : source.startsWith(BUILTIN) ? source.slice(BUILTIN.length).trim() : undefined;
  if (builtin !== undefined) {
    if (!/^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(builtin)) return { problem: `"${source}" does not name an agent after "${BUILTIN}"` };
    for (const folder of foldersOf(places)) {
      const border = borderOf(folder, places);
      const [found, second] = ENDINGS.map((ending) => join(folder, builtin + ending))
        .map((path) => ({ path, read: read(name, path, border) }))
        .filter((each) => each.read !== "missing");
      if (found === undefined || found.read === "missing") continue;
      if (second === undefined || "problem" in found.read) return found.read;
      return { ...found.read, notes: [...found.read.notes, `${second.path} is not used: ${found.path} stands before it`] };
    }
    const near = source === undefined ? undefined : nearest(builtin, agentsThere(places));
    const hint = near === undefined ? "" : `. Did you mean "${BUILTIN}${near}"?`;
    const problem = `its instructions are missing; looked at ${whereLooked(places, builtin)}${hint}`;
    // A name that is almost right was meant for one of ours.
    return near === undefined ? { problem, missing: true } : { problem };
  }
  return findFile(name, source ?? "", places.root);
}

function findFile(name: string, source: string, root: string | undefined): AgentFound {
  const path = resolve(root ?? "/", source);
  const climbs = !inside(root ?? "/project", resolve(root ?? "/project", source));
  if (isAbsolute(source) || climbs)
    return { problem: `"${source}" is not a path inside the repository${root === undefined ? "" : ` (${path})`}` };
  if (root === undefined) return { unseen: `"${source}" was not looked for, since no project was named` };
  const found = read(name, path, root);
  return found === "missing" ? { problem: `its file is missing; looked at ${path}` } : found;
}

/** The folders that are searched for agents by name, in order. */
function foldersOf({ root, agentsDir, shipped }: AgentPlaces): string[] {
  return [...(root === undefined ? [] : [resolve(root, agentsDir)]), shipped];
}

/** The folder that an agent's file may not lead out of: the repository, or a folder elsewhere that a person named. */
function borderOf(folder: string, { root, shipped }: AgentPlaces): string | undefined {
  if (folder === shipped) return undefined;
  return root !== undefined && inside(root, folder) ? root : folder;
}

function whereLooked(places: AgentPlaces, name: string): string {
  const paths = foldersOf(places).map((folder) => join(folder, `${name}.md`));
  return [...paths.slice(0, -1), places.discreet ? "what ships with us" : paths.at(-1)].join(" and ");
}

/** The names of all agents that exist. */
export function agentsThere(places: AgentPlaces): string[] {
  // An unreadable folder offers no names; reading an agent reports why.
  return foldersOf(places).flatMap((folder) =>
    entriesAt(realOf(folder)).flatMap(({ name }) => {
      const ending = ENDINGS.findLast((each) => name.endsWith(each));
      return ending === undefined ? [] : [name.slice(0, -ending.length)];
    }),
  );
}

function read(name: string, path: string, within?: string): AgentRead | "missing" {
  const real = realOf(path);
  if (within !== undefined && !inside(realOf(within), real)) return { problem: `${path} leads out of the repository` };
  const found = readPlainAt(real, MAX_BYTES);
  if ("bytes" in found) return parseAgent(name, path, found.bytes.toString("utf8"));
  return found.absent === "missing" ? "missing" : { problem: `${path} cannot be read: it ${tellAbsent(found.absent)}` };
}

/** Reads instructions with their optional front matter (`tools:`, `model:`). */
export function parseAgent(name: string, path: string, text: string): AgentRead {
  const parts = /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)([\s\S]*)$/.exec(text);
  const instructions = (parts ? parts[2]! : text).trim();
  if (instructions === "") return { problem: `${path} holds no instructions` };
  if (!parts) return { agent: { name, path, instructions }, notes: [] };
  const read = readSmallYaml(parts[1]!);
  if ("problems" in read) return { problem: `${path}: its front matter ${oneLine(read.problems[0]!.message, 300)}` };
  const front = FrontMatter.safeParse(read.value ?? {});
  if (!front.success) {
    const issue = front.error.issues[0]!;
    return { problem: `${path}: front matter ${issue.path.join(".") || "(top)"} ${ruleOf(issue)}` };
  }
  const { tools, model } = front.data;
  const words = (typeof tools === "string" ? splitWords(tools) : (tools ?? [])).map((word) => word.trim());
  const { tools: known, edit, notes } = readToolWords(words.filter((word) => word !== ""));
  return {
    agent: { name, path, instructions, ...(tools != null && { tools: known, editWord: edit }), ...modelOf(model) },
    notes: notes.map((note) => `${path}: ${note}`),
  };
}

/** A list of models is named by all its names joined, so that the name stays the same whichever of them exists. */
function modelOf(named: string | string[] | null | undefined): Pick<Agent, "model" | "modelChoices"> {
  const models = [...new Set(typeof named === "string" ? [named] : (named ?? []))].filter((model) => model !== INHERIT);
  const [model] = models;
  if (model === undefined) return {};
  return models.length === 1 ? { model } : { model: models.join(" or "), modelChoices: models };
}

export type Duty = "plan" | "review" | "qa" | "build";

const DUTY_TOOLS: Record<Duty, readonly ToolName[]> = {
  plan: ["file_ops_read"],
  review: ["file_ops_read"],
  qa: ["shell", "file_ops_read"],
  build: ["shell", "file_ops"],
};

/** The tools an agent gets for a duty: the duty's own, narrowed by the agent's front matter. */
export function toolsFor(agent: Agent, duty: Duty): ToolName[] {
  const allowed = DUTY_TOOLS[duty];
  const own = agent.tools;
  if (own === undefined) return [...allowed];
  return allowed.flatMap((tool): ToolName[] => {
    if (own.includes(tool)) return [tool];
    if (tool === "file_ops" && own.includes("file_ops_read")) return ["file_ops_read"];
    if (tool === "file_ops_read" && own.includes("file_ops")) return ["file_ops_read"];
    return [];
  });
}

/** Whether a path is the folder or below it. */
export function inside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || (!way.startsWith("..") && !isAbsolute(way));
}

/** Whether an agent can change files in a duty. */
export function canWrite(agent: Agent, duty: Duty): boolean {
  return toolsFor(agent, duty).some((tool) => tool === "file_ops" || tool === "shell");
}
