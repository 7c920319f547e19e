import { type ChildProcess, spawn } from "node:child_process";
import type { AtTheEnd } from "./home.ts";

/** Swaps the entry at `path` between `first` and `second` as fast as it can, until the test is over. */
export async function swapper(path: string, first: string, second: string, atTheEnd: AtTheEnd): Promise<ChildProcess> {
  const program = `
    const fs = require("node:fs");
    const [path, first, second] = process.argv.slice(1);
    const flip = (from) => { try { fs.renameSync(path, from === first ? second : first); fs.renameSync(from, path); } catch {} };
    process.stdout.write("ready");
    for (;;) { flip(second); flip(first); }
  `;
  const child = spawn(process.execPath, ["-e", program, path, first, second], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise<void>((done) => child.once("exit", () => done()));
  atTheEnd(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  await new Promise<void>((ready) => child.stdout.once("data", () => ready()));
  return child;
}
