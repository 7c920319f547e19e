import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { packageRoot } from "../../src/lib/package-root.ts";
import { temporaryHome } from "./home.ts";
import { project } from "./squads.ts";

/** A home as an earlier version left it when it was killed in the middle of a turn, and the project of its squad. */
export function storedHome(fixture: "home-0005"): { home: string; folder: string } {
  const home = temporaryHome();
  const folder = project();
  const sql = readFileSync(join(packageRoot, "test", "fixtures", `${fixture}.sql`), "utf8");
  withDatabase(home, (db) => db.exec(sql.replaceAll("{{home}}", home).replaceAll("{{project}}", folder)));
  return { home, folder };
}

/** Reads or changes a home's database while no daemon uses it. */
export function withDatabase<T>(home: string, work: (db: InstanceType<typeof DatabaseSync>) => T): T {
  const db = new DatabaseSync(join(home, "io.db"));
  try {
    return work(db);
  } finally {
    db.close();
  }
}
