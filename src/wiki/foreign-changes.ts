import { stampOf, stampText } from "./page-file.ts";

/** More changes at once are a copied or moved folder, and are not reported page by page. */
const MAX_REPORTED = 200;
const MAX_REMEMBERED = 5_000;

/** Tells other people's changes from those that this process made or already reported. */
export function createForeignChanges(fileOf: (path: string) => string) {
  /** Known pages with their state; "" if removed. */
  const known = new Map<string, string>();

  const remember = (path: string) => {
    if (known.size > MAX_REMEMBERED) known.clear();
    known.set(path, stateOf(fileOf(path)));
  };

  return {
    /** Records that this process changed a page. */
    remember,
    isForeign: (path: string, state: string): boolean => known.get(path) !== state,
    /** Reports each page, unless there are too many. */
    report(paths: readonly string[], onForeign: (path: string) => void): void {
      if (paths.length > MAX_REPORTED) return;
      for (const path of paths) {
        remember(path);
        onForeign(path);
      }
    },
  };
}

/** A file's state as text; "" if there is no file. */
export function stateOf(file: string): string {
  const stamp = stampOf(file);
  return stamp ? stampText(stamp) : "";
}
