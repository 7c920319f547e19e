import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { longFirst, shareOf } from "./test/support/shares.ts";

/** Tests that start daemons, commands or the real runtime, by what they import: `npm run test:daemons`. */
const STARTS_PROGRAMS =
  /(?:support\/(?:cluster|daemon|engine|orchestrator|pocket-daemon|program|runtime|shell-sweep|squads)|\/suite)\.ts"/;
const DAEMONS = (readdirSync("test", { recursive: true }) as string[])
  .filter((file) => file.endsWith(".test.ts"))
  .map((file) => join("test", file))
  .filter((file) => STARTS_PROGRAMS.test(readFileSync(file, "utf8")));

/** Tests that take long or need programs of their own: `npm run test:slow`. */
const SLOW = [
  // Kill sweeps: a run is killed after, before and during every step.
  "test/**/*.crash.ts",
  // Every provider's protocol, window after window; setup and doctor.
  "test/engine/wire/**/*.test.ts",
  "test/daemon/doctor.test.ts",
  // Every mode by what happens on disk, with a sandbox and without.
  "test/daemon/modes*.test.ts",
  // Commands that outlive their turns, and everything that has to end them.
  "test/daemon/background.test.ts",
  // Starts daemons on the default port.
  "test/cli/words.test.ts",
  "test/orchestrator/setup.test.ts",
  // Ten windows, one after another.
  "test/orchestrator/rules.test.ts",
  // Daemons that are restarted, and more rows than are counted in one go.
  "test/news/**/*.test.ts",
  // Waits for real times; a month, and a week of the shortest interval.
  "test/schedules/{daemon,month}.test.ts",
  // GitHub held against its own description, with real git over HTTP; daemons that are killed at each request.
  "test/forge/contract.test.ts",
  "test/forge/pulls.test.ts",
  "test/forge/watch*.test.ts",
  // In a real terminal, and in a real browser.
  "test/screens/**/*.test.ts",
  "test/web/**/*.web.ts",
  // Whole runs of the pipeline, and projects made with the real tools of their languages.
  "test/swarm/**/*.test.ts",
  "test/forge/{several,task}-repositories.test.ts",
  "test/repositories/**/*.test.ts",
  // Folders that are exchanged while they are copied.
  "test/git/exchanged-copies.test.ts",
  // Attacks on the sandbox, with real bubblewrap.
  "test/walls/**/*.test.ts",
  // MCP clients of both eras, also with a daemon that is killed under them.
  "test/channels/mcp/**/*.test.ts",
  // Editors with the official clients of ACP, also with a daemon that is killed under them.
  "test/channels/acp/**/*.test.ts",
  "test/cli/connect.test.ts",
  // Files that come with messages, with a backup and a daemon that is killed.
  "test/channels/http/files.test.ts",
  // MCP servers of the user's: published ones, hostile ones, and kills.
  "test/mcp/{servers,hostile,projects,addresses,logins,loaded}.test.ts",
  // The runtime is killed under each of them; one conversation over all of them.
  "test/channels/{runtime-killed,one-conversation}.test.ts",
  // Clients of others, which are fetched from their registries the first time.
  "test/channels/real-clients.test.ts",
  // OpenAI clients whose daemon is killed or stopped under them.
  "test/channels/openai/kills.test.ts",
  // The Telegram channel, against a Bot API server on loopback.
  "test/channels/telegram/**/*.test.ts",
  // What a newcomer meets: setup by keys, backups, shells, the tour and the README.
  "test/first-hour/**/*.test.ts",
  // Workers on a real nats-server, with kills, freezes and cuts.
  "test/workers/jobs/**/*.test.ts",
  "test/workers/cluster/**/*.test.ts",
];

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return longFirst(await super.sort(files));
  }

  override async shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { index, count } = this.ctx.config.shard!;
    return shareOf(files, index, count);
  }
}

export default defineConfig({
  test: {
    globalSetup: ["test/support/global-setup.ts"],
    pool: "forks",
    // No module of ours keeps state, so test files share what they have loaded.
    isolate: false,
    // One more than the two cores we count on: half of a test's time is spent waiting for programs that it started.
    maxWorkers: 3,
    hookTimeout: 120_000,
    sequence: { sequencer: LongFirst },
    projects: [
      {
        extends: true,
        test: { name: "fast", include: ["test/**/*.test.ts"], exclude: [...SLOW, ...DAEMONS], testTimeout: 120_000 },
      },
      { extends: true, test: { name: "daemons", include: DAEMONS, exclude: SLOW, testTimeout: 120_000 } },
      { extends: true, test: { name: "slow", include: SLOW, testTimeout: 300_000, env: { IO_TEST_MODE: "full" } } },
      // Programs that take minutes to build or gigabytes to install: the gate leaves them out.
      {
        extends: true,
        test: { name: "nightly", include: ["test/**/*.nightly.ts"], testTimeout: 3_600_000, env: { IO_TEST_MODE: "full" } },
      },
      {
        extends: true,
        test: { name: "pictures", include: ["test/web/**/*.pictures.ts"], testTimeout: 600_000, env: { IO_TEST_MODE: "full" } },
      },
    ],
  },
});
