import { z } from "zod";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { Contradiction } from "../protocol/page-review.ts";
import { nameOf } from "../store/page-writers.ts";
import type { State } from "../store/state.ts";
import type { Wiki } from "./wiki.ts";

export interface ContradictionsDeps {
  wiki: Pick<Wiki, "contradictions" | "peek">;
  state: State;
  log: Log;
}

const stateKey = (path: string) => `wiki-contradictions:${nameOf(path)}`;

/** Stores the contradictions found when each page was written, for later review. */
export function createContradictions({ wiki, state, log }: ContradictionsDeps) {
  return {
    /** Checks a page that was just written. Never throws: the page is already saved. */
    async check(path: string): Promise<Contradiction[]> {
      try {
        const found = await wiki.contradictions(path);
        if (found.length > 0) state.set(stateKey(path), JSON.stringify(found));
        else state.delete(stateKey(path));
        return found;
      } catch (error) {
        log.warn("cannot compare a page with the others", { path, error: messageOf(error) });
        return [];
      }
    },
    /** Stored contradictions whose two lines both still exist. */
    noted(path: string): Contradiction[] {
      const kept = state.get(stateKey(path));
      const found = kept === undefined ? [] : z.array(Contradiction).parse(JSON.parse(kept));
      return found.filter((each) => contains(each.path, each.says) && contains(each.otherPath, each.otherSays));
    },
  };

  function contains(path: string, line: string): boolean {
    return wiki.peek(path)?.includes(line) ?? false;
  }
}
export type Contradictions = ReturnType<typeof createContradictions>;
