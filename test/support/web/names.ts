import { readFileSync, writeFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { until } from "../until.ts";

/** The roles that a screen reader navigates by. */
const ROLES =
  /^\s*- (heading|link|button|textbox|searchbox|combobox|checkbox|radio|slider|region|navigation|main|article|complementary|log|list|group|meter|alert|alertdialog|note) "((?:[^"\\]|\\.)*)"/;
const KEPT = new URL("../../web/view-names.json", import.meta.url);
type Kept = Record<string, string[]>;
const kept = (): Kept => JSON.parse(readFileSync(KEPT, "utf8")) as Kept;

/** The roles and names in a view, each once, without what differs between runs: ids, paths, hashes, numbers. */
export async function namesIn(page: Page): Promise<string[]> {
  const tree = await page.locator("body").ariaSnapshot();
  const found = tree.split("\n").flatMap((line) => {
    const [, role, name] = ROLES.exec(line) ?? [];
    return role === undefined || name === undefined ? [] : [`${role}: ${withoutChance(name)}`];
  });
  return [...new Set(found)].sort();
}

const withoutChance = (name: string): string =>
  name
    .replace(/\/\S*io-test-\w+\S*/g, "a folder")
    .replace(/\b[a-z]_[0-9a-z]{8,}\b/g, "an id")
    .replace(/\b[0-9a-f]{7,}\b/g, "a hash")
    .replace(/\d+(?:[.,:]\d+)*/g, "#");

/**
 * The expected and the actual roles and names of a view, once they agree or time is up. `VIEW_NAMES=write` stores the actual
 * ones as expected, once they no longer change.
 */
export async function compareNames(page: Page, view: string): Promise<{ wanted: string[]; found: string[] }> {
  if (process.env.VIEW_NAMES === "write") {
    let found = await namesIn(page);
    await until("the view to be whole", async () => {
      await page.waitForTimeout(1_500);
      const before = found;
      found = await namesIn(page);
      return before.join() === found.join();
    });
    writeFileSync(KEPT, `${JSON.stringify({ ...kept(), [view]: found }, null, 2)}\n`);
  }
  const wanted = kept()[view] ?? [];
  let found: string[] = [];
  const agree = async () => {
    found = await namesIn(page);
    return found.join("\n") === wanted.join("\n");
  };
  // If they never agree, the caller reports the difference.
  await until(`the names of ${view}`, agree, 30_000).catch(() => undefined);
  return { wanted, found };
}
