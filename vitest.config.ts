import { defineConfig } from "vitest/config";

/** A kill sweep takes minutes: `npm run test:crash` runs those, and `npm test` everything else. */
export const CRASHES = "test/**/*.crash.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts", "src/**/*.test.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    pool: "forks",
    // One more than the two cores we count on: half of a test's time is waiting for programs that it started.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
