import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A temporary folder, gone when the test is over. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "io-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** An IO_HOME of its own, with this in its config file. */
export function temporaryHome(config: Record<string, unknown> = {}): string {
  const home = temporaryFolder();
  writeFileSync(join(home, "config.json"), JSON.stringify(config), { mode: 0o600 });
  return home;
}
