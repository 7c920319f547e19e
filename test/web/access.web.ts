import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { runIo, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { until } from "../support/until.ts";
import { compareNames } from "../support/web/names.ts";
import { seededDaemon, viewsOf } from "../support/web/seed.ts";

const browser = fileBrowser();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Found {
  violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[];
}

/** The problems that axe rates serious or critical, one per line. */
async function barriers(page: Page): Promise<string[]> {
  // Colours are wrong in the middle of a transition.
  await page.evaluate(
    "Promise.allSettled(document.getAnimations().filter((each) => each.effect.getComputedTiming().endTime < 5_000).map((each) => each.finished))",
  );
  // Runs through the debugger, because the page's content security policy blocks scripts.
  await page.evaluate(axe);
  const { violations } = await page.evaluate<Found>("axe.run(document, { resultTypes: ['violations'] })");
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`));
}

/** By how many pixels the page, or the view in it, is wider than the space it has. */
const overflow = (page: Page) =>
  page.evaluate(
    "Math.max(...[document.documentElement, document.querySelector('main')].map((each) => each.scrollWidth - each.clientWidth))",
  ) as Promise<number>;

test("no view has a barrier, changed its roles and names unnoticed, is wider than the screen or complains, in either theme, on a phone and on a desk", async () => {
  const seeded = await seededDaemon();
  const late = JSON.parse((await runIo(["web", "--json"], seeded.daemon.home)).stdout) as { url: string; expiresAt: string };
  const found: string[] = [];
  for (const theme of ["light", "dark"] as const)
    for (const width of [390, 1280]) {
      const { page, complaints, foreign } = await openWindow(await browser(), seeded.daemon, { theme, width });
      for (const [name, path] of Object.entries(viewsOf(seeded))) {
        await page.goto(seeded.daemon.url + path);
        await page.locator("h1").first().waitFor();
        await page.locator(".needs, .need").getByText("rm -rf").first().waitFor();
        if (name === "chat") await page.locator(".hljs-keyword").first().waitFor();
        if (name === "task") await page.locator(".line.added").first().waitFor();
        if (name === "map") await page.locator(".map a").first().waitFor();
        if (name === "chat") await page.locator("summary", { hasText: "Context" }).click();
        if (name === "page") await page.getByRole("button", { name: "History" }).click();
        if (name === "page") await page.getByRole("button", { name: "Restore" }).waitFor();
        const where = `${name}, ${theme}, ${width}`;
        found.push(...(await barriers(page)).map((each) => `${where}: ${each}`));
        if (theme === "light" && width === 1280) {
          const { wanted, found: names } = await compareNames(page, name);
          found.push(...names.filter((each) => !wanted.includes(each)).map((each) => `${name}: has ${each}, which is new`));
          found.push(...wanted.filter((each) => !names.includes(each)).map((each) => `${name}: lacks ${each}`));
        }
        const beyond = await overflow(page);
        if (beyond > 0) found.push(`${where}: ${beyond} px wider than the screen`);
      }
      found.push(...complaints, ...foreign);
    }
  expect(found).toEqual([]);

  // By now, the ticket from the beginning is older than a minute.
  await until("the ticket to be too old", () => Date.now() > Date.parse(late.expiresAt), 70_000);
  const path = late.url.slice(seeded.daemon.url.length);
  const { page } = await openWindow(await browser(), seeded.daemon, { signedIn: false, path });
  expect(await page.getByRole("alert").textContent()).toContain("older than a minute");
}, 400_000);

test("an empty home has a sentence in every view and no barrier, from 360 px on", async () => {
  const daemon = await startDaemonProcess(temporaryHome(), { IO_ENGINE: "rehearsal" });
  const { page, complaints } = await openWindow(await browser(), daemon, { width: 360 });
  const found: string[] = [];
  for (const name of ["inbox", "chat/main", "squads", "tasks", "runs", "wiki", "skills", "usage"]) {
    await page.goto(`${daemon.url}/${name}`);
    await page.locator(".empty").waitFor();
    found.push(...(await barriers(page)).map((each) => `${name}: ${each}`));
    if ((await overflow(page)) > 0) found.push(`${name}: wider than the screen`);
  }
  expect([...found, ...complaints]).toEqual([]);
});

test("the page can be used by keyboard alone: the palette goes anywhere, ? lists the keys, single keys go to views", async () => {
  const daemon = await startDaemonProcess(temporaryHome(), { IO_ENGINE: "rehearsal" });
  const { page } = await openWindow(await browser(), daemon);
  await page.getByRole("log").waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to or do" }).waitFor();
  await page.keyboard.type("zzzz");
  await page.getByText("Nothing is called “zzzz”.").waitFor();
  await page.keyboard.press("Control+a");
  await page.keyboard.type("sett");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Stop everything" }).waitFor();
  await page.keyboard.press("?");
  const keys = page.getByRole("dialog", { name: "Keys" });
  await keys.waitFor();
  await page.keyboard.press("Escape");
  await keys.waitFor({ state: "hidden" });
  // On a busy machine, the two keys may be too far apart, or be pressed while the dialog is still closing.
  await until("the wiki by its keys", async () => {
    await page.keyboard.press("g");
    await page.keyboard.press("w");
    // The settings also have a search field.
    return page.getByRole("heading", { name: "Wiki" }).isVisible();
  });
  await page.getByRole("searchbox").waitFor();
  // The pages load after the heading, and the button that Tab must reach is shown with them.
  await page.getByRole("button", { name: "New page" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("g?");
  await expect.poll(() => page.getByRole("searchbox").inputValue(), { timeout: 15_000 }).toBe("g?");
  await page.keyboard.press("Tab");
  await expect.poll(() => page.evaluate("document.activeElement.textContent"), { timeout: 15_000 }).toBe("New page");
  await page.keyboard.press("Enter");
  await page.getByLabel("Path").waitFor();
  await expect.poll(() => page.evaluate("document.activeElement.id"), { timeout: 15_000 }).toBe("page-path");
  await page.keyboard.type("general/keys");
  await page.keyboard.press("Tab");
  await page.keyboard.type("# By hand");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "By hand" }).waitFor();
});
