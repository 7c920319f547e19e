import { nearest } from "../home/config.ts";
import { conflict, missing } from "../lib/errors.ts";
import { named, oneLine, quoted } from "../lib/quoted.ts";
import type { Emit } from "../protocol/events.ts";
import type { Agent, Decision, ModelTier, Squad, UniverseName } from "../protocol/squads.ts";
import type { Store } from "../store/open.ts";
import type { SessionRows } from "../store/sessions.ts";
import { type DecisionPage, type SquadStore, squadOwner } from "../store/squads.ts";
import { findByName } from "./called.ts";
import { checkedSlug, folderAt, freeSlug, limited, MAX, required, slugOf } from "./input.ts";
import { nextCharacter, pickUniverse } from "./universes.ts";

export interface NewSquad {
  name: string;
  projectPath: string;
  slug?: string | undefined;
  universe?: UniverseName | undefined;
  /** The base of a relative path; without it only absolute paths are accepted. */
  cwd?: string | undefined;
}

export interface NewAgent {
  roleTitle: string;
  charter: string;
  modelTier?: ModelTier | undefined;
}

export interface NewDecision {
  decision: string;
  context?: string | undefined;
  author?: string | undefined;
}

export interface TeamsDeps {
  database: Store;
  store: SquadStore;
  sessions: SessionRows;
  emit: Emit;
  /** Whether a squad is being deleted. */
  isBeingDeleted: (slug: string) => boolean;
  forgetSessions: (ids: readonly string[]) => Promise<void>;
  dataFolder: string | undefined;
}

/** The squads themselves, their agents and their decisions. */
export function createTeams({ database, store, sessions, emit, isBeingDeleted, forgetSessions, dataFolder }: TeamsDeps) {
  function find(slug: string): Squad {
    const squad = store.find(slug);
    if (squad && !isBeingDeleted(squad.slug)) return squad;
    const known = store.list().map((one) => one.slug);
    const near = nearest(slug.slice(0, 100), known);
    const some = near ? `Did you mean "${near}"?` : `There are: ${known.slice(0, 20).join(", ")}.`;
    throw missing(`There is no squad called ${quoted(slug, 100)}. ${known.length === 0 ? "There are none yet." : some}`);
  }

  function findAgent(squad: Squad, characterName: string): Agent {
    const agent = store.findAgent(squad.slug, characterName.trim());
    if (agent) return agent;
    const all = store.agents(squad.slug);
    const meant = findByName(characterName, all);
    if (meant) return meant;
    const names = all.map((one) => `${oneLine(one.characterName, 100)} (${oneLine(one.roleTitle, 100)})`);
    const help = all.length === 0 ? "It has no agents yet." : `Its agents: ${names.join(", ")}.`;
    throw missing(`The squad "${squad.slug}" has no agent called ${quoted(characterName, 100)}. ${help}`);
  }

  const tellChanged = ({ slug }: Squad) => emit({ type: "squad.updated", data: { ...find(slug) } });

  return {
    find,
    findAgent,
    tellChanged,
    create({ name, projectPath, slug, universe, cwd }: NewSquad): { squad: Squad; isNew: boolean } {
      const title = required("The name", name, MAX.name);
      const given = slug === undefined ? undefined : checkedSlug(slug);
      const folder = folderAt(projectPath, cwd, dataFolder);
      const existing = store.findByPath(folder);
      if (existing && isBeingDeleted(existing.slug))
        throw conflict(`The squad "${existing.slug}" of ${named(folder, 300)} is just being deleted. Try again in a moment.`);
      if (existing) {
        if (slug === undefined || slug === existing.slug) return { squad: existing, isNew: false };
        throw conflict(
          `The squad "${existing.slug}" already works on ${named(folder, 300)}; a folder has one squad. Use that slug.`,
        );
      }
      const chosen = given ?? freeSlug(slugOf(title) || "squad", (one) => store.find(one) !== undefined);
      const squad = store.create({
        slug: chosen,
        name: title,
        projectPath: folder,
        universe: universe ?? pickUniverse(store.list().map((one) => one.universe)),
      });
      emit({ type: "squad.created", data: { ...squad } });
      return { squad, isNew: true };
    },

    addAgent(slug: string, { roleTitle, charter, modelTier = "medium" }: NewAgent): Agent {
      const squad = find(slug);
      const role = required("The role title", roleTitle, MAX.roleTitle);
      const help = "Say what the agent answers for; details belong in the project's own documents or the wiki.";
      const duty = required("The charter", charter, MAX.charter, help);
      const agent = database.transaction(() => {
        const names = store.agents(squad.slug).map((one) => one.characterName);
        if (names.length >= MAX.agents)
          throw conflict(`The squad "${squad.slug}" has ${names.length} agents already, the most a squad may have.`);
        const { name: characterName } = nextCharacter(squad.universe, names);
        return store.addAgent(squad.slug, { characterName, roleTitle: role, charter: duty, modelTier });
      });
      tellChanged(squad);
      return agent;
    },
    async removeAgent(slug: string, characterName: string): Promise<Agent> {
      const squad = find(slug);
      const agent = findAgent(squad, characterName);
      const busy = store.openTasks(squad.slug).filter((task) => task.agent === agent.characterName);
      if (busy.length > 0)
        throw conflict(
          `${agent.characterName} still has ${busy.map(({ id }) => id).join(", ")} to do. Wait for it or cancel it first.`,
        );
      const left = database.transaction(() => {
        store.removeAgent(squad.slug, agent.characterName);
        return sessions.remove(squadOwner(squad.slug, agent.characterName));
      });
      tellChanged(squad);
      await forgetSessions(left);
      return agent;
    },

    logDecision(slug: string, given: NewDecision): Decision {
      const decision = required("The decision", given.decision, MAX.decision);
      const context = limited("The context", given.context?.trim() ?? "", MAX.context) || undefined;
      const logged = store.addDecision(find(slug).slug, { decision, context, author: given.author });
      emit({ type: "decision.logged", data: { ...logged } });
      return logged;
    },
    /** Newest first, before the one with this id. */
    decisions(slug: string, { text, ...page }: DecisionPage & { text?: string | undefined } = {}): Decision[] {
      const squad = find(slug);
      return text ? store.searchDecisions(squad.slug, text, page) : store.listDecisions(squad.slug, page);
    },
  };
}
export type Teams = ReturnType<typeof createTeams>;
