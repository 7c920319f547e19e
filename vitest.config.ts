import { defineConfig } from "vitest/config";

/** A kill sweep takes minutes: `npm run test:crash` runs those. */
export const CRASHES = "test/**/*.crash.ts";
/** Provider by provider: every wire, window after window, setup and doctor. `npm run test:providers` runs those. */
export const PROVIDERS = ["test/engine/wire/**/*.test.ts", "test/daemon/doctor.test.ts", "test/orchestrator/setup.test.ts"];

/** What needs a terminal: `npm run test:screens` runs those, and `npm test` everything else. */
export const SCREENS = ["test/screens/**/*.test.ts"];

/** Whole runs of the pipeline: `npm run test:swarm` runs those. */
export const SWARM = "test/swarm/**/*.test.ts";

/** Projects made with the real tools of their languages: `npm run test:repositories` runs those. */
export const REPOSITORIES = "test/repositories/**/*.test.ts";

/** Attacks on the wall, with real bubblewrap: `npm run test:walls` runs those. */
export const WALLS = "test/walls/**/*.test.ts";

/** The Telegram channel, against a Bot API server on loopback: `npm run test:telegram` runs those. */
export const TELEGRAM = "test/channels/telegram/**/*.test.ts";

/** The page in a real browser: `npm run test:web` runs those. */
export const WEB = "test/web/**/*.web.ts";

/** What a newcomer meets: setup by keys, backups, shells, the tour and the README. `npm run test:first-hour` runs those. */
export const FIRST_HOUR = "test/first-hour/**/*.test.ts";

/** Workers on a real nats-server, with kills, freezes and cuts: `npm run test:workers` runs those. */
export const WORKERS = ["test/dispatch/**/*.test.ts", "test/cluster/**/*.test.ts"];

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: [...PROVIDERS, ...SCREENS, SWARM, REPOSITORIES, WALLS, TELEGRAM, FIRST_HOUR, ...WORKERS],
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
