import type { Agent } from "../protocol/squads.ts";
import { stem, stemsOf } from "./words.ts";

/**
 * Fields of work, and the words of each. A word of a task that is listed here counts for every agent whose role or charter has a
 * word of the same field.
 */
const FIELDS: Readonly<Record<string, string>> = {
  frontend:
    "frontend front ui ux interface page screen view button form modal dialog menu layout style styling css sass tailwind html dom browser component widget theme responsive accessibility a11y login signup navbar sidebar react vue svelte angular nextjs nuxt jsx tsx web client animation icon font colour color dark",
  backend:
    "backend back server api endpoint route router rest graphql grpc webhook middleware controller service microservice handler request response queue worker express fastify nest django flask rails spring laravel gin auth authentication authorization session oauth jwt",
  data: "database db sql query schema migration migrate table index postgres postgresql mysql sqlite mongo mongodb redis orm prisma drizzle etl warehouse dataset transaction",
  devops:
    "devops ci cd deploy deployment deployments docker dockerfile container kubernetes k8s helm terraform infrastructure infra workflow release publish cloud aws gcp azure nginx environment rollout provisioning pipeline",
  observability:
    "log logs logging logger metric metrics monitoring monitor trace tracing telemetry alert alerting dashboard observability",
  testing:
    "test tests tester testing qa quality coverage regression e2e unit integration spec flaky assertion fixture mock playwright cypress vitest jest pytest",
  security:
    "security secure vulnerability cve exploit xss csrf injection encryption encrypt secret secrets permission audit sandbox hardening",
  docs: "docs doc documentation readme guide tutorial changelog manual wording prose writer",
  mobile: "mobile ios android swift kotlin flutter phone tablet app-store reactnative",
  performance:
    "performance slow speed latency throughput profile profiling benchmark optimise optimize memory leak cache caching",
  architecture: "architecture architect design refactor refactoring restructure module modular structure lead technical",
  learning: "ml model training inference llm prompt embedding notebook pytorch tensorflow pandas numpy",
};

const FIELDS_OF: ReadonlyMap<string, readonly string[]> = fieldsByStem();

function fieldsByStem(): Map<string, string[]> {
  const index = new Map<string, string[]>();
  for (const [field, words] of Object.entries(FIELDS)) {
    for (const word of new Set([field, ...words.split(" ")].map(stem))) index.set(word, [...(index.get(word) ?? []), field]);
  }
  return index;
}

const NEAR = 0.8;

export interface Choice {
  agent: Agent;
  reason: string;
}

/** The agent whose role and charter fit the task best; among those about as good, an idle one. */
export function chooseAgent(task: string, agents: readonly Agent[], { busy }: { busy: ReadonlySet<string> }): Choice | undefined {
  if (agents.length === 0) return undefined;
  const addressed = agents.find(({ characterName }) => isAddressed(task, characterName));
  if (addressed) return { agent: addressed, reason: `${addressed.characterName} is addressed by name` };
  if (agents.length === 1) return { agent: agents[0]!, reason: `${agents[0]!.characterName} is the only agent of the squad` };

  const scored = score(task, agents).sort((a, b) => b.points - a.points);
  const best = scored[0]!;
  if (best.points === 0) return fallback(agents, busy);
  const near = scored.filter(({ points }) => points >= best.points * NEAR);
  const chosen = near.find(({ agent }) => !busy.has(agent.characterName)) ?? best;
  const why = `${chosen.agent.characterName} (${chosen.agent.roleTitle}) fits: ${chosen.matches.slice(0, 5).join(", ")}`;
  return { agent: chosen.agent, reason: chosen === best ? why : `${why}; idle, while ${best.agent.characterName} is busy` };
}

interface Scored {
  agent: Agent;
  points: number;
  matches: string[];
}

/** A word that several agents share says less about any of them, so each match is divided among them. */
function score(task: string, agents: readonly Agent[]): Scored[] {
  const wanted = [...new Set(stemsOf(task))];
  const profiles = agents.map(({ roleTitle, charter }) => ({ role: profile(roleTitle), charter: profile(charter) }));
  const shares = wanted.map((word) => profiles.map((one) => Math.max(weigh(word, one.role) * 2, weigh(word, one.charter))));
  return agents.map((agent, index) => {
    const matches = wanted.filter((_, at) => shares[at]![index]! > 0);
    const points = shares.reduce((sum, row) => sum + row[index]! / Math.sqrt(row.filter((share) => share > 0).length || 1), 0);
    return { agent, points, matches };
  });
}

interface Profile {
  words: Set<string>;
  /** For each field, its share of this text's known words. */
  fields: Map<string, number>;
}

function profile(text: string): Profile {
  const words = new Set(stemsOf(text));
  const fields = new Map<string, number>();
  for (const word of words) for (const field of FIELDS_OF.get(word) ?? []) fields.set(field, (fields.get(field) ?? 0) + 1);
  const total = [...fields.values()].reduce((sum, count) => sum + count, 0);
  return { words, fields: new Map([...fields].map(([field, count]) => [field, count / total])) };
}

/** Two for the very word; up to one and a half for a word of the same field. */
function weigh(word: string, { words, fields }: Profile): number {
  if (words.has(word)) return 2;
  return Math.max(0, ...(FIELDS_OF.get(word) ?? []).map((field) => 1.5 * (fields.get(field) ?? 0)));
}

/** "Hannibal, …", "@Hannibal …", "ask Hannibal to …": never a name that merely occurs, as in "let face detection …". */
function isAddressed(task: string, name: string): boolean {
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const called = `${escaped}\\s*[,:]|(?:ask|tell) ${escaped} (?:to|that|about)\\b`;
  return (
    new RegExp(`^\\s*(?:${called})|(?:^|\\s)@${escaped}(?!\\w| \\d)`, "i").test(task) ||
    new RegExp(`^\\s*(?:[Aa]sk|[Tt]ell|[Ll]et|[Hh]ave) ${escaped}(?!\\w| \\d)`).test(task)
  );
}

/** Idle agents precede busy ones; among them, the more general precede specialists. */
function fallback(agents: readonly Agent[], busy: ReadonlySet<string>): Choice {
  const idle = agents.filter(({ characterName }) => !busy.has(characterName));
  const [agent] = (idle.length > 0 ? idle : [...agents]).sort((a, b) => generality(b) - generality(a));
  const { characterName, roleTitle } = agent!;
  const state = idle.length > 0 ? " that is idle" : ", and all are busy";
  return {
    agent: agent!,
    reason: `no role or charter names this work; ${characterName} (${roleTitle}) is the most general${state}`,
  };
}

function generality({ roleTitle }: Agent): number {
  if (/\b(?:lead|architect|full[- ]?stack|generalist|principal)\b/i.test(roleTitle)) return 2;
  return /\b(?:engineer|developer)\b/i.test(roleTitle) ? 1 : 0;
}
