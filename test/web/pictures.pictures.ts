import { chmodSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { afterAMonth } from "../support/web/month.ts";
import { seededDaemon, viewsOf } from "../support/web/seed.ts";

const browser = fileBrowser();
const folder = resolve(process.env.PICTURES ?? "docs/pictures");
/** Selects some pictures only, such as `PICTURES_OF=run,task PICTURES_WIDTHS=390`. */
const only = process.env.PICTURES_OF?.split(",");
const widths = (process.env.PICTURES_WIDTHS ?? "1280,390,820,1920").split(",").map(Number);
const isWanted = ([name]: [string, unknown]) => only === undefined || only.includes(name);

/** Views that are pictured once more after something in them was opened. */
const OPENED: Record<string, { view: string; tall?: number; open: (page: Page) => Promise<unknown> }> = {
  context: {
    view: "chat",
    open: async (page) => {
      await page.getByText(/^Context \d/).click();
      await page.getByText(/^of (?:the window|these)$/).waitFor();
    },
  },
  gantt: { view: "run", open: (page) => page.getByRole("heading", { name: "Timeline" }).scrollIntoViewIfNeeded(), tall: 1_900 },
  diff: {
    view: "task",
    tall: 1_500,
    open: async (page) => {
      const commenting = page.getByRole("button", { name: "Comment", exact: true });
      await page.locator(".line.added").first().waitFor();
      if (await commenting.isVisible()) await commenting.click();
      await page.getByRole("button", { name: "Comment on line 1" }).first().click();
    },
  },
  provider: {
    view: "settings",
    tall: 2_600,
    open: async (page) => {
      await page.getByRole("button", { name: "Set up provider" }).click();
      await page.getByRole("button", { name: "Add a model to" }).click();
      await page.getByRole("button", { name: "Add a header to" }).click();
      await page.getByRole("button", { name: "Add an MCP server" }).click();
      await page.getByLabel("provider", { exact: true }).evaluate((part) => part.scrollIntoView());
    },
  },
  doctor: {
    view: "settings",
    tall: 2_600,
    open: async (page) => {
      await page.getByRole("button", { name: "Look at everything" }).click();
      await page.getByRole("button", { name: "Mend modes" }).waitFor();
    },
  },
};

/** Tests only that every view can be drawn. `npm run pictures` makes the pictures for people to look at. */
test("every view, in both themes and four widths", async () => {
  const seeded = await seededDaemon(afterAMonth);
  chmodSync(join(seeded.daemon.home, "token"), 0o644);
  mkdirSync(folder, { recursive: true });
  const views = viewsOf(seeded);
  for (const theme of ["light", "dark"] as const)
    for (const width of widths) {
      const { page } = await openWindow(await browser(), seeded.daemon, { theme, width, touch: width < 1_000 });
      // Nothing is pictured halfway through a movement.
      await page.emulateMedia({ reducedMotion: "reduce" });
      const keep = async (name: string) =>
        expect(await page.screenshot({ path: join(folder, `${name}-${theme}-${width}.png`) })).toBeTruthy();
      for (const [name, path] of Object.entries(views).filter(isWanted)) {
        await open(page, name, seeded.daemon.url + path);
        await keep(name);
      }
      for (const [name, { view, tall, open: unfold }] of Object.entries(OPENED).filter(isWanted)) {
        if (tall !== undefined) await page.setViewportSize({ width, height: tall });
        await open(page, view, seeded.daemon.url + views[view]!);
        await unfold(page);
        await keep(name);
        await page.setViewportSize({ width, height: 900 });
      }
    }
});

async function open(page: Page, name: string, url: string): Promise<void> {
  await page.goto(url);
  await page.locator(".needs, .need").first().waitFor();
  await page.locator("h1").first().waitFor();
  if (name === "chat") await page.getByRole("heading", { name: "What I found" }).first().waitFor();
  if (name === "map") await page.locator(".map a").first().waitFor();
  if (name === "page") await page.getByRole("heading", { name: "Style" }).waitFor();
  if (name === "task") await page.locator(".activity").first().waitFor();
  if (name === "squad") await page.getByText("tokens today").first().waitFor();
  if (name === "skills") await page.getByText("One line a change.").waitFor();
  if (name === "squads") await page.locator(".card .work").first().waitFor();
  if (name === "run") await page.getByRole("listitem").first().waitFor();
  if (name === "tasks" || name === "runs") await page.locator(".list-row").first().waitFor();
  if (name === "settings") await page.getByLabel("mode", { exact: true }).waitFor();
}
