/** A version of the Copilot runtime, and the npm package that brings it. */
export interface TestedRuntime {
  version: string;
  /** The package's name without the platform that it ends with. */
  packagePrefix: string;
  packageVersion: string;
}

/** The runtimes that `npm run test:runtimes` passes on, oldest first. The last one is what IO installs. */
export const TESTED_RUNTIMES: readonly TestedRuntime[] = [
  { version: "1.0.85", packagePrefix: "@github/copilot-sdk-", packageVersion: "1.0.14" },
  { version: "1.0.92", packagePrefix: "@github/copilot-", packageVersion: "1.0.92" },
  { version: "1.0.102", packagePrefix: "@github/copilot-", packageVersion: "1.0.102" },
];

export const DEFAULT_RUNTIME = TESTED_RUNTIMES.at(-1)!;

export function isTested(version: string | null): boolean {
  return TESTED_RUNTIMES.some((tested) => tested.version === version);
}

/** What to tell a person whose runtime was never tried with this version of IO. */
export function untestedNote(version: string | null): string {
  const tested = TESTED_RUNTIMES.map((each) => each.version).join(", ");
  return `The Copilot runtime ${version ?? "of an unknown version"} was not tested with this version of IO (tested: ${tested}).`;
}
