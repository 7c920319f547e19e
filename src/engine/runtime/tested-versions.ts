/** A version of the Copilot runtime, and the npm package that contains it. */
export interface TestedRuntime {
  version: string;
  /** The package's name without its platform suffix. */
  packagePrefix: string;
  packageVersion: string;
}

/** The runtimes with which `npm run test:runtimes` passes, oldest first. IO installs the last one. */
export const TESTED_RUNTIMES: readonly TestedRuntime[] = [
  { version: "1.0.85", packagePrefix: "@github/copilot-sdk-", packageVersion: "1.0.14" },
  { version: "1.0.92", packagePrefix: "@github/copilot-", packageVersion: "1.0.92" },
  { version: "1.0.102", packagePrefix: "@github/copilot-", packageVersion: "1.0.102" },
];

export const DEFAULT_RUNTIME = TESTED_RUNTIMES.at(-1)!;

export function isTested(version: string | null): boolean {
  return TESTED_RUNTIMES.some((tested) => tested.version === version);
}

/** The warning for a runtime that was never tested with this version of IO. */
export function untestedNote(version: string | null): string {
  const tested = TESTED_RUNTIMES.map((each) => each.version).join(", ");
  return `The Copilot runtime ${version ?? "of an unknown version"} was not tested with this version of IO (tested: ${tested}).`;
}
