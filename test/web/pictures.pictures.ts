import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { seededDaemon, viewsOf } from "../support/web/seed.ts";

const browser = fileBrowser();
const folder = resolve(process.env.PICTURES ?? "docs/pictures");

/** Not a test of anything but that every view can be drawn: `npm run pictures` makes these to be looked at. */
test("every view, in both themes and both widths", async () => {
  const seeded = await seededDaemon();
  mkdirSync(folder, { recursive: true });
  for (const theme of ["light", "dark"] as const)
    for (const width of [1280, 390]) {
      const { page } = await openWindow(await browser(), seeded.daemon, { theme, width });
      for (const [name, path] of Object.entries(viewsOf(seeded))) {
        await page.goto(seeded.daemon.url + path);
        await page.locator("h1").first().waitFor();
        await page.waitForLoadState("load");
        if (name === "chat") await page.getByRole("heading", { name: "What I found" }).first().waitFor();
        if (name === "map") await page.locator(".map a").first().waitFor();
        if (name === "page") await page.getByRole("heading", { name: "Style" }).waitFor();
        if (name === "run") await page.getByRole("listitem").first().waitFor();
        expect(await page.screenshot({ path: join(folder, `${name}-${theme}-${width}.png`) })).toBeTruthy();
      }
    }
});
