import { stampOf, stampText } from "./page-file.ts";

/** Past this many at once, somebody has copied or moved a whole folder, and page by page is no news. */
const MOST_AT_ONCE = 200;
const REMEMBERED = 5_000;

/** Tells the changes that somebody else made from those that this process made, or has told of already. */
export function createForeignChanges(fileOf: (path: string) => string) {
  /** The state of pages that are known here; "" for removed ones. */
  const known = new Map<string, string>();

  const remember = (path: string) => {
    if (known.size > REMEMBERED) known.clear();
    known.set(path, stateOf(fileOf(path)));
  };

  return {
    /** Notes that this process changed a page. */
    remember,
    isForeign: (path: string, state: string): boolean => known.get(path) !== state,
    /** Calls back for each, unless they are too many to be news. */
    tell(paths: readonly string[], onForeign: (path: string) => void): void {
      if (paths.length > MOST_AT_ONCE) return;
      for (const path of paths) {
        remember(path);
        onForeign(path);
      }
    },
  };
}

/** A file's state in one text; "" for one that is not there. */
export function stateOf(file: string): string {
  const stamp = stampOf(file);
  return stamp ? stampText(stamp) : "";
}
