/** One test runner's results, as read from its output. */
export interface TestReport {
  runner: string;
  /** Failing tests by their full names; a name that occurs twice counts twice. */
  failed: string[];
  /** How many tests passed, if the runner says so. */
  passed: number | undefined;
  /** The runner came to its own end, and its totals agree with the names that were read. */
  complete: boolean;
}

/** The names of runners in reports, or of the format that they share. */
export const RUNNER_NAMES: readonly string[] = [
  ...["TAP", "node:test", "vitest", "jest", "mocha", "pytest", "unittest", "go test"],
  ...["cargo test", "CTest", "ExUnit", "PHPUnit", "Surefire", "Gradle", "JUnit XML"],
];

/** Reads one runner's output line by line; colours are already removed. */
export interface Format {
  line(text: string): void;
  /** Undefined if this runner said nothing. */
  report(): TestReport | undefined;
}

/** How many names of one runner are kept. A report with more is not complete. */
export const MAX_NAMES = 2_000;
/** How much of a name is kept. */
export const MAX_NAME = 300;

/** The number in front of a word: 3 for "passed" in "1 failed, 3 passed". */
export function countOf(text: string, word: string): number {
  const words = text.split(/\s+/);
  const at = words.findIndex((each, index) => each.startsWith(word) && /^\d+$/.test(words[index - 1] ?? ""));
  return at < 0 ? 0 : Number(words[at - 1]);
}

/** A name on one line, cut to the length that is kept. */
export const shortName = (name: string): string => name.replace(/\s+/g, " ").trim().slice(0, MAX_NAME);

/** Collects names, up to a limit. */
export function createNames() {
  const names: string[] = [];
  let total = 0;
  return {
    add(name: string): void {
      total += 1;
      if (names.length < MAX_NAMES) names.push(shortName(name));
    },
    list: () => names,
    total: () => total,
    isWhole: () => total === names.length,
  };
}
export type Names = ReturnType<typeof createNames>;
