import { spawn } from "node:child_process";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";

const SCRIPT = `
  import { DatabaseSync } from "@photostructure/sqlite";
  const db = new DatabaseSync(process.argv[1]);
  db.exec("PRAGMA busy_timeout = 10000; BEGIN EXCLUSIVE");
  process.stdout.write("held");
  process.stdin.once("data", () => { db.exec("ROLLBACK"); db.close(); process.exit(); });`;

/** Starts another program that locks the home's database against all writers until it is released. */
export async function holdDatabase(home: string): Promise<{ release(): Promise<void> }> {
  const child = spawn(process.execPath, ["--input-type=module", "-e", SCRIPT, join(home, "io.db")], { cwd: packageRoot });
  const ended = new Promise<void>((done) => child.once("exit", () => done()));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  await new Promise<void>((held, failed) => {
    child.stdout.once("data", () => held());
    child.stderr.once("data", (text) => failed(new Error(String(text))));
  });
  return {
    async release() {
      child.stdin.write("go\n");
      await ended;
    },
  };
}
