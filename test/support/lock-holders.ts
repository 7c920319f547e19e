import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { lockHolder, takeLock } from "../../src/store/lock.ts";

/**
 * Starts one process per folder that holds the lock there, and prints for each lock whether `lockHolder` names the real holder.
 */
const [mode, ...folders] = process.argv.slice(2);
const lockIn = (folder: string) => join(folder, "daemon.lock");

async function hold(folder: string): Promise<{ pid: number; end(): void }> {
  const self = fileURLToPath(import.meta.url);
  const child = spawn(process.execPath, ["--import", "tsx", self, "hold", folder], { stdio: ["pipe", "pipe", "inherit"] });
  await new Promise((ready) => child.stdout.once("data", ready));
  return { pid: child.pid!, end: () => child.stdin.end() };
}

if (mode === "hold") {
  if (!takeLock(lockIn(folders[0]!))) process.exit(1);
  process.stdout.write("held");
  process.stdin.once("end", () => process.exit()).resume();
} else {
  const holders: Awaited<ReturnType<typeof hold>>[] = [];
  for (const folder of folders) holders.push(await hold(folder));
  const found = folders.map((folder, index) => ({
    inode: statSync(lockIn(folder)).ino,
    isHolder: lockHolder(lockIn(folder))?.pid === holders[index]!.pid,
  }));
  process.stdout.write(JSON.stringify(found));
  for (const { end } of holders) end();
}
