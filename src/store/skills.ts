import type { Store } from "./open.ts";
import { createState } from "./state.ts";

/** A record that somebody enabled a skill, with its content hash. */
export interface SkillSwitch {
  slug: string;
  /** The hash of everything in the skill's folder. */
  hash: string;
  enabledAt: string;
  by: "a person" | "an earlier version";
}

const TAKEN_OVER = "skills.takenOver";

/** Which skills are enabled. Stored here and not beside the skills, because a command could write there. */
export function createSkillSwitches(store: Store) {
  const { db } = store;
  const state = createState(store);
  const all = db.prepare("SELECT slug, hash, enabled_at AS enabledAt, enabled_by AS by FROM skills ORDER BY slug");
  const one = db.prepare("SELECT hash FROM skills WHERE slug = ?");
  const put = db.prepare(
    `INSERT INTO skills (slug, hash, enabled_at, enabled_by) VALUES (?, ?, ?, ?)
     ON CONFLICT (slug) DO UPDATE SET hash = excluded.hash, enabled_at = excluded.enabled_at, enabled_by = excluded.enabled_by`,
  );
  const remove = db.prepare("DELETE FROM skills WHERE slug = ?");
  const switchOn = ({ slug, hash, enabledAt, by }: SkillSwitch) => void put.run(slug, hash, enabledAt, by);
  return {
    all: () => all.all() as unknown as SkillSwitch[],
    /** The skill's hash when it was enabled; undefined if it was not. */
    hashOf: (slug: string) => (one.get(slug) as { hash: string } | undefined)?.hash,
    switchOn,
    switchOff: (slug: string) => void remove.run(slug),
    /** Once per home: imports skills that were enabled before this table existed. */
    takeOver(find: () => SkillSwitch[]): SkillSwitch[] {
      if (state.get(TAKEN_OVER) !== undefined) return [];
      return store.transaction(() => {
        if (state.get(TAKEN_OVER) !== undefined) return [];
        const found = find();
        found.forEach(switchOn);
        state.set(TAKEN_OVER, "1");
        return found;
      });
    },
  };
}
export type SkillSwitches = ReturnType<typeof createSkillSwitches>;
