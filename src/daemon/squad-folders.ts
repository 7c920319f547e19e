import { existsSync } from "node:fs";
import { DatabaseSync } from "@photostructure/sqlite";
import type { Paths } from "../home/paths.ts";
import { isFolder } from "../lib/is-folder.ts";
import { named } from "../lib/quoted.ts";
import type { Finding } from "../protocol/doctor.ts";

/** Finds the squads whose project is not where it was. */
export function findMissingSquadFolders({ database }: Pick<Paths, "database">): Finding[] {
  if (!existsSync(database)) return [];
  const db = new DatabaseSync(database, { readOnly: true });
  try {
    // A database that no daemon has opened yet has no squads.
    const hasSquads = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'squads'").get() !== undefined;
    const squads = hasSquads ? db.prepare("SELECT slug, project_path AS path FROM squads ORDER BY slug").all() : [];
    return (squads as { slug: string; path: string }[])
      .filter(({ path }) => !isFolder(path))
      .map(({ slug, path }) => ({
        check: "squads",
        state: "warning",
        found: `the squad ${slug} cannot work: ${named(path, 300)} is not there`,
        remedy: `Put the folder back, or say where it is now: io squad move ${slug} <folder>`,
      }));
  } finally {
    db.close();
  }
}
