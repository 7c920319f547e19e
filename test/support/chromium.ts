import { type Browser, chromium } from "playwright-core";
import { exec } from "../../src/process/exec.ts";
import { ensureProgram } from "./program.ts";

/** Launches the system's Chromium, which is installed if it is missing, or the one at `CHROMIUM_PATH`. */
export async function launchBrowser(): Promise<Browser> {
  // Chromium's own sandbox does not work as root.
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  return chromium.launch({ executablePath: process.env.CHROMIUM_PATH || (await found()), args });
}

async function found(): Promise<string> {
  await ensureProgram("chromium");
  return (await exec("which", ["chromium"])).stdout.trim();
}
