import { type Browser, chromium } from "playwright-core";
import { exec } from "../../src/process/exec.ts";
import { ensureProgram } from "./program.ts";

/** The system's own Chromium, which is installed where it is missing; `CHROMIUM_PATH` names another. */
export async function launchBrowser(): Promise<Browser> {
  // Chromium's own sandbox does not work for root.
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  return chromium.launch({ executablePath: process.env.CHROMIUM_PATH || (await found()), args });
}

async function found(): Promise<string> {
  await ensureProgram("chromium");
  return (await exec("which", ["chromium"])).stdout.trim();
}
