import { mkdtempSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Registers clean-up work to run after the test, or after its file. */
export type AtTheEnd = (work: () => void | Promise<void>) => void;

/** Collects clean-up work for a hook to run: `afterAll` only works while tests are being defined, not while they run. */
export function collectEndings(): { atTheEnd: AtTheEnd; end: () => Promise<void> } {
  const works: (() => void | Promise<void>)[] = [];
  return {
    atTheEnd: (work) => void works.unshift(work),
    /** Runs all of it even if a part fails, then throws the first error. Last registered, first run. */
    async end() {
      const failures: unknown[] = [];
      for (const work of works)
        try {
          await work();
        } catch (error) {
          failures.push(error);
        }
      if (failures.length > 0) throw failures[0];
    },
  };
}

/** Creates a temporary folder that is removed after the test. */
export function temporaryFolder(atTheEnd: AtTheEnd = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), "io-test-"));
  atTheEnd(() => removeFolder(folder));
  return folder;
}

const REMOVAL_DEADLINE_MS = 20_000;

/**
 * Removes a folder that a program may still write into, such as a daemon's last git command. The retries of `rm` ignore files
 * that appeared after its first attempt, so the whole removal is repeated.
 */
export async function removeFolder(folder: string): Promise<void> {
  const deadline = Date.now() + REMOVAL_DEADLINE_MS;
  for (;;)
    try {
      return await rm(folder, { recursive: true, force: true });
    } catch (error) {
      const { code = "" } = error as NodeJS.ErrnoException;
      if (!["ENOTEMPTY", "EBUSY"].includes(code) || Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
}

/** Creates a new IO_HOME with this config file. */
export function temporaryHome(config: Record<string, unknown> = {}, atTheEnd: AtTheEnd = onTestFinished): string {
  const home = temporaryFolder(atTheEnd);
  writeFileSync(join(home, "config.json"), JSON.stringify(config), { mode: 0o600 });
  return home;
}
