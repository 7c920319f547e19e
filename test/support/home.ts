import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
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
    async end() {
      for (const work of works) await work();
    },
  };
}

/** A temporary folder, gone when the test is over. */
export function temporaryFolder(atTheEnd: AtTheEnd = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), "io-test-"));
  atTheEnd(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** An IO_HOME of its own, with this in its config file. */
export function temporaryHome(config: Record<string, unknown> = {}, atTheEnd: AtTheEnd = onTestFinished): string {
  const home = temporaryFolder(atTheEnd);
  writeFileSync(join(home, "config.json"), JSON.stringify(config), { mode: 0o600 });
  return home;
}
