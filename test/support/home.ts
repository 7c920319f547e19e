import { mkdtempSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** When what a test needs is put away: after the test, or after its file. */
export type AtTheEnd = (work: () => void | Promise<void>) => void;

/** What a hook is to put away: `afterAll` is heard only where tests are told apart, and not while they run. */
export function collectEndings(): { atTheEnd: AtTheEnd; end: () => Promise<void> } {
  const works: (() => void | Promise<void>)[] = [];
  return {
    atTheEnd: (work) => void works.unshift(work),
    /** Does all of it, also where a part fails, and then says what failed first. */
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

/** A temporary folder, gone when the test is over. */
export function temporaryFolder(atTheEnd: AtTheEnd = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), "io-test-"));
  atTheEnd(() => removeFolder(folder));
  return folder;
}

const REMOVAL_DEADLINE_MS = 20_000;

/**
 * Removes a folder that a program may still write into, such as a daemon's last git command. The retries of `rm` try the
 * same folder again without the files that have come since, so the whole removal is repeated.
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

/** An IO_HOME of its own, with this in its config file. */
export function temporaryHome(config: Record<string, unknown> = {}, atTheEnd: AtTheEnd = onTestFinished): string {
  const home = temporaryFolder(atTheEnd);
  writeFileSync(join(home, "config.json"), JSON.stringify(config), { mode: 0o600 });
  return home;
}
