import { nearest } from "../../home/config.ts";
import { isRecord } from "../../lib/is-record.ts";
import { quoted } from "../../lib/quoted.ts";
import { type Agent, type AgentPlaces, agentsThere, BUILTIN, canWrite, findAgent, toolsFor } from "./agents.ts";
import { neededFor } from "./conditions.ts";
import { type Path, type Report, valueAt } from "./file-places.ts";
import { type DeclaredKind, kindOf } from "./kind.ts";
import { DEFAULT_AGENTS, type Phase } from "./schema.ts";

type KindOrder = readonly Pick<DeclaredKind, "name" | "needs" | "usedBy">[];

/** The kinds of the phases before and after one. */
interface Around {
  before: readonly string[];
  after: readonly string[];
}

/** Checks what no schema can: agents exist, the order of phases works, keywords can be told apart. */
export function validateReferences(
  raw: object,
  kinds: KindOrder,
  places: AgentPlaces,
  report: Report,
): { agents: Map<string, Agent>; notes: string[] } {
  const listed = valueAt(raw, ["pipeline"]);
  const phases: unknown[] = Array.isArray(listed) ? listed : [];
  const names = phases.map((phase) => (isRecord(phase) ? kindNameOf(phase) : ""));
  const { agents, notes, refer } = findAgents(raw, agentsUsed(phases), places, report);
  for (const [index, phase] of phases.entries()) {
    if (!isRecord(phase)) continue;
    const at: Path = ["pipeline", index];
    for (const key of agentKeys(phase)) refer([...at, key]);
    if ("clarificationKeyword" in phase && !("clarificationAgent" in phase)) {
      report([...at, "clarificationKeyword"], 'nobody answers: name a "clarificationAgent" too');
    }
    checkOrder(at, phase, { before: names.slice(0, index), after: names.slice(index + 1) }, kinds, report);
    for (const [place, review] of (Array.isArray(phase.reviews) ? phase.reviews : []).entries()) {
      if (isRecord(review)) checkReview([...at, "reviews", place], review, refer, report);
    }
    if (isRecord(phase.qa)) checkReview([...at, "qa"], phase.qa, refer, report);
  }
  return { agents, notes };
}

/** Reports agents that have to change files although their own front matter denies them every tool for it. */
export function checkWriting(
  phases: readonly Phase[],
  kinds: readonly DeclaredKind[],
  agents: ReadonlyMap<string, Agent>,
  report: Report,
): void {
  for (const [index, phase] of phases.entries()) {
    for (const { name, duty, key = "agent" } of kindOf(kinds, phase).members(phase)) {
      const agent = agents.get(name);
      if (duty !== "build" || !agent || canWrite(agent, duty)) continue;
      const word = agent.editWord ?? "edit";
      report(
        ["pipeline", index],
        `"${name}" has to change files here and could not: ${agent.path} narrows its tools to ${toolsFor(agent, duty).join(", ") || "none"}. Add "${word}" to its "tools", or leave "tools" out`,
        key,
      );
    }
  }
}

/** The names of all agents that a phase, a review or a test names. */
function agentsUsed(value: unknown): Set<string> {
  if (Array.isArray(value)) return new Set(value.flatMap((each) => [...agentsUsed(each)]));
  if (!isRecord(value)) return new Set();
  const own = agentKeys(value).flatMap((key) => (typeof value[key] === "string" ? [value[key]] : []));
  return new Set([...own, ...Object.values(value).flatMap((each) => [...agentsUsed(each)])]);
}

/**
 * Finds the agents under "agents"; `refer` finds those that are only named elsewhere. An unused agent may be missing if it is a
 * builtin, but not if it is a file.
 */
function findAgents(raw: object, used: ReadonlySet<string>, places: AgentPlaces, report: Report) {
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
    if ("missing" in found && !used.has(name) && source.startsWith(BUILTIN)) {
      notes.push(`agents.${name}: no agent ${quoted(source)} ships here; nobody uses it`);
    } else if ("problem" in found) {
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
    const byName = findAgent(name, undefined, places);
    const found = "missing" in byName && DEFAULT_AGENTS.has(name) ? findAgent(name, DEFAULT_AGENTS.get(name), places) : byName;
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
  return { agents, notes, refer };
}

/** The keys that name an agent, the main one first. */
function agentKeys(holder: Record<string, unknown>): string[] {
  return [...("agent" in holder ? ["agent"] : []), ...Object.keys(holder).filter((key) => key.endsWith("Agent"))];
}

function kindNameOf({ phase }: Record<string, unknown>): string {
  return typeof phase === "string" ? phase : "";
}

function checkOrder(at: Path, phase: Record<string, unknown>, { before, after }: Around, kinds: KindOrder, report: Report): void {
  const name = kindNameOf(phase);
  const kind = kinds.find((each) => each.name === name);
  const users = kind?.usedBy?.filter((user) => before.includes(user) || after.includes(user)) ?? [];
  if (users[0] !== undefined && !users.some((user) => after.includes(user)))
    report([...at, "phase"], `"${name}" must stand before "${users[0]}": nothing that follows uses what it makes`);
  const needed = neededFor(phase.condition);
  if (needed !== undefined && !before.includes(needed)) {
    report([...at, "condition"], `"${phase.condition}" needs a "${needed}" phase before it`);
  }
  if (kind?.needs !== undefined && !before.includes(kind.needs)) {
    report([...at, "phase"], `"${name}" needs ${article(kind.needs)} "${kind.needs}" phase before it`);
  }
}

function article(word: string): string {
  return /^[aeiou]/i.test(word) ? "an" : "a";
}

function checkReview(at: Path, review: Record<string, unknown>, refer: (path: Path) => void, report: Report): void {
  for (const key of agentKeys(review)) refer([...at, key]);
  const { approvalKeyword, clarificationKeyword } = review;
  if (typeof clarificationKeyword !== "string") return;
  if (!("clarificationAgent" in review))
    report([...at, "clarificationKeyword"], 'nobody answers: name a "clarificationAgent" too');
  if (typeof approvalKeyword === "string" && approvalKeyword.toLowerCase() === clarificationKeyword.toLowerCase()) {
    report([...at, "clarificationKeyword"], `"${clarificationKeyword}" is the approval keyword too; a reply could mean both`);
  }
}
