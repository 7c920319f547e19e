import type { Git } from "../git/command.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { analyzeProject } from "./analyze.ts";
import { tellFacts } from "./prompt.ts";

const FRESH_MS = 10 * 60_000;
const DEADLINE_MS = 15_000;

/** What agents are told of their projects: looked at once and kept for a while, since it changes the system message. */
export function createFacts({ git, log, now = Date.now }: { git: Git; log: Log; now?: () => number }) {
  const known = new Map<string, { text: Promise<string>; at: number }>();
  const look = (folder: string): Promise<string> =>
    analyzeProject(git, folder, { signal: AbortSignal.timeout(DEADLINE_MS) }).then(tellFacts, (error: unknown) => {
      log.warn("a project could not be analysed", { folder, error: messageOf(error) });
      known.delete(folder);
      return "It could not be analysed; look for yourself.";
    });
  return {
    of(folder: string): Promise<string> {
      const before = known.get(folder);
      if (before && now() - before.at < FRESH_MS) return before.text;
      const text = look(folder);
      known.set(folder, { text, at: now() });
      return text;
    },
    forget: (folder: string) => void known.delete(folder),
  };
}
export type Facts = ReturnType<typeof createFacts>;
