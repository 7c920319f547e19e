import { join } from "node:path";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { launchBrowser } from "../test/support/chromium.ts";
import { build, startBenchDaemon, temporaryFolder } from "./support.ts";
import { followers } from "./web/followers.ts";
import { longLists } from "./web/long-lists.ts";
import { opening } from "./web/opening.ts";

/** Measures how much of the page must load before one can type, how many can watch at once, and whether long lists stall it. */
export async function run(args: string[]): Promise<void> {
  const clients = Number(args[0] ?? 1_000);
  build();
  const folder = temporaryFolder();
  const words = Array.from({ length: 100 }, (_, at) => `word${at} `);
  const model = await startModelServer(() => ({ say: words, gapMs: 20 }));
  const daemon = await startBenchDaemon(model.url, join(folder.path, "daemon"));
  const browser = await launchBrowser();
  try {
    await opening(browser, daemon);
    await longLists(browser, daemon, folder.path);
    await followers(daemon, clients);
  } finally {
    await browser.close();
    await daemon.stop();
    await model.close();
    folder.remove();
  }
}
