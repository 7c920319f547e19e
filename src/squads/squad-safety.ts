import { SquadSafety } from "../home/safety-config.ts";
import { loosenedBy, type Safety } from "../home/tighten.ts";
import { conflict } from "../lib/errors.ts";
import { named, quoted } from "../lib/quoted.ts";
import type { Isolation, Squad } from "../protocol/squads.ts";
import type { SquadStore } from "../store/squads.ts";
import type { Facts } from "./facts.ts";
import { folderAt } from "./input.ts";
import type { Teams } from "./teams.ts";

/** Changes to a squad's safety settings; null removes a setting. */
export type SafetyChanges = { [K in keyof SquadSafety]: SquadSafety[K] | null | undefined };

export interface SquadSafetyDeps {
  store: SquadStore;
  teams: Pick<Teams, "find" | "tellChanged">;
  facts: Pick<Facts, "forget">;
  dataFolder: string | undefined;
}

/** Where a squad works, and its own, stricter safety settings. */
export function createSquadSafety({ store, teams, facts, dataFolder }: SquadSafetyDeps) {
  const changed = (squad: Squad): Squad => {
    teams.tellChanged(squad);
    return teams.find(squad.slug);
  };
  return {
    /** Points a squad to the place its project was moved to. */
    move(slug: string, projectPath: string): Squad {
      const squad = teams.find(slug);
      const folder = folderAt(projectPath, undefined, dataFolder);
      const other = store.findByPath(folder);
      if (other && other.slug !== squad.slug)
        throw conflict(`The squad ${quoted(other.slug)} already works on ${named(folder, 300)}.`);
      const open = store.openTasks(squad.slug);
      if (open.length > 0)
        throw conflict(
          `The squad ${quoted(squad.slug)} still has ${open.length} tasks to do. Wait for them or cancel them first.`,
        );
      store.setPath(squad.slug, folder);
      return changed(squad);
    },
    /** Sets where its next tasks are worked on. */
    isolate(slug: string, isolation: Isolation): Squad {
      const squad = teams.find(slug);
      store.setIsolation(squad.slug, isolation);
      return changed(squad);
    },
    /** Sets the commands that check its project; null means that they are found in the project again. */
    check(slug: string, checks: readonly string[] | null): Squad {
      const squad = teams.find(slug);
      store.setChecks(squad.slug, checks);
      facts.forget(squad.projectPath);
      return changed(squad);
    },
    /** Makes a squad's safety settings stricter than the global ones. */
    hold(slug: string, changes: SafetyChanges, all: Safety): Squad {
      const squad = teams.find(slug);
      const own = Object.fromEntries(Object.entries({ ...squad.safety, ...changes }).filter(([, value]) => value !== null));
      const safety = SquadSafety.parse(own);
      const [loose] = loosenedBy(all, safety);
      if (loose) throw conflict(`A squad can only be held tighter than all. ${loose}`);
      store.setSafety(squad.slug, safety);
      return changed(squad);
    },
  };
}
