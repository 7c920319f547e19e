import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Git } from "../git/command.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { analyzeProject, type ChosenChecks } from "./analyze.ts";
import { formatFacts } from "./prompt.ts";

const FRESH_MS = 10 * 60_000;
const DEADLINE_MS = 15_000;
const MOST_FILES = 200;

export interface FactsDeps {
  git: Git;
  log: Log;
  /** The squad of a folder, which may have commands of its own. */
  chosen: (folder: string) => ChosenChecks | undefined;
  now?: () => number;
}

/**
 * Facts about projects, cached for a while because they change the system message. A change of a file directly in the project's
 * folder, such as its manifest, invalidates them.
 */
export function createFacts({ git, log, chosen, now = Date.now }: FactsDeps) {
  const known = new Map<string, { text: Promise<string>; at: number; files: string }>();
  const look = (folder: string): Promise<string> =>
    analyzeProject(git, folder, { signal: AbortSignal.timeout(DEADLINE_MS), chosen: chosen(folder) }).then(
      formatFacts,
      (error: unknown) => {
        log.warn("a project could not be analysed", { folder, error: messageOf(error) });
        known.delete(folder);
        return "It could not be analysed; look for yourself.";
      },
    );
  return {
    async of(folder: string): Promise<string> {
      const files = await filesIn(folder);
      const before = known.get(folder);
      if (before && before.files === files && now() - before.at < FRESH_MS) return before.text;
      const text = look(folder);
      known.set(folder, { text, at: now(), files });
      return text;
    },
    forget: (folder: string) => void known.delete(folder),
  };
}
/** A text that changes when a file directly in the folder does. */
async function filesIn(folder: string): Promise<string> {
  // A folder that is gone has no files; when it is back, it is analysed again.
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const names = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  const marks = names.slice(0, MOST_FILES).map(async (name) => {
    const stats = await stat(join(folder, name)).catch(() => undefined);
    return stats ? `${name} ${stats.size} ${stats.mtimeMs}` : "";
  });
  return (await Promise.all(marks)).sort().join("\n");
}

export type Facts = ReturnType<typeof createFacts>;
