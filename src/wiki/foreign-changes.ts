import { stampOf, stampText } from "./page-file.ts";

/** More than this at once is a copied or moved folder, and is not reported page by page. */
const MOST_AT_ONCE = 200;
const REMEMBERED = 5_000;

/** Separates changes made by others from those that this process made or has already reported. */
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
    /** Calls back for each, unless there are too many to report one by one. */
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
