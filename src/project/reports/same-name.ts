/** A name that failed, and the file of its test if the runner says. */
export interface Located {
  name: string;
  file: string | undefined;
}

/** How many names of a report are counted. Beyond that, none is known to be the only one. */
const MOST = 100_000;

/** Counts the names of all tests of a report, so that tests of several files with one name can be told apart. */
export function createNameCounts() {
  const counts = new Map<string, number>();
  let isFull = false;
  return {
    add(name: string): void {
      if (counts.size < MOST || counts.has(name)) counts.set(name, (counts.get(name) ?? 0) + 1);
      else isFull = true;
    },
    /** The name, with its file if another test has that name too. */
    nameOf: ({ name, file }: Located): string =>
      file !== undefined && (isFull || (counts.get(name) ?? 0) > 1) ? `${name} (${file})` : name,
  };
}

/** A name as it was before its file was added. */
export const withoutFile = (name: string): string => name.replace(/ \([\w.@+/-]+\.[cm]?[jt]sx?\)$/, "");
