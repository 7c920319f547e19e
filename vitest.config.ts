import { defineConfig } from "vitest/config";

/** A kill sweep takes minutes: `npm run test:crash` runs those. */
export const CRASHES = "test/**/*.crash.ts";
/** Every wire of every provider, window after window: `npm run test:providers` runs those, and `npm test` everything else. */
export const PROVIDERS = "test/engine/wire/**/*.test.ts";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: [PROVIDERS],
    globalSetup: ["test/support/global-setup.ts"],
    pool: "forks",
    // No module of ours keeps state, so files of tests share what they have loaded.
    isolate: false,
    // One more than the two cores we count on: half of a test's time is waiting for programs that it started.
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
