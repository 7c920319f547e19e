import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { seededDaemon, viewsOf } from "../support/web/seed.ts";

const browser = fileBrowser();

/** Targets that are too small for a finger, except links in a sentence, which are as high as their line. */
const tooSmall = (page: Page) =>
  page.evaluate(`(() => {
    const all = document.querySelectorAll("a[href], button, input, select, textarea, summary, [role=button]");
    return [...all].flatMap((each) => {
      const { width, height } = each.getBoundingClientRect();
      const isSeen = width > 1 && height > 1 && each.checkVisibility() && !each.classList.contains("skip");
      const isInSentence = each.matches("a") && each.closest("p, td, .markdown") !== null;
      if (!isSeen || isInSentence || (height > 43.5 && width > 43.5)) return [];
      return [each.tagName + " " + (each.getAttribute("aria-label") ?? each.textContent).trim().slice(0, 40) + " " + Math.round(width) + "x" + Math.round(height)];
    });
  })()`) as Promise<string[]>;

test("under a finger every target is at least 44 px in every view, only the view scrolls, and Allow is far from Deny", async () => {
  const seeded = await seededDaemon();
  const found: string[] = [];
  for (const width of [390, 1024]) {
    const { page } = await openWindow(await browser(), seeded.daemon, { width, touch: true });
    const views = { ...viewsOf(seeded), newSquad: "/squads?new", newRun: "/runs?new", newPage: "/wiki?new" };
    for (const [name, path] of Object.entries(views)) {
      await page.goto(seeded.daemon.url + path);
      await page.locator("h1").first().waitFor();
      await page.locator(".needs, .need").getByText("rm -rf").first().waitFor();
      if (name === "chat") await page.locator(".hljs-keyword").first().waitFor();
      if (name === "task") await page.locator(".line.added").first().waitFor();
      if (name === "run") await page.getByRole("link", { name: "pm", exact: true }).first().waitFor();
      if (name === "settings") await page.getByLabel("mode", { exact: true }).waitFor();
      found.push(...(await tooSmall(page)).map((each) => `${name}, ${width}: ${each}`));
      const beyond = await page.evaluate("document.documentElement.scrollHeight - innerHeight");
      if (beyond !== 0) found.push(`${name}, ${width}: the page itself scrolls by ${beyond} px`);
    }
    await page.goto(`${seeded.daemon.url}/inbox`);
    const question = page.getByRole("article", { name: "Approval" });
    const allow = await question.getByRole("button", { name: "Allow" }).boundingBox();
    const deny = await question.getByRole("button", { name: "Deny" }).boundingBox();
    if (!allow || !deny || deny.x - (allow.x + allow.width) < 100) found.push(`${width}: Allow is too near to Deny`);
  }
  expect(found).toEqual([]);
});

test("under a finger the lines of a difference are dense to read, and become targets while one comments", async () => {
  const seeded = await seededDaemon();
  const { page } = await openWindow(await browser(), seeded.daemon, { width: 390, touch: true, path: `/tasks/${seeded.task}` });
  await page.locator(".line.added").first().waitFor();
  const number = page.getByRole("button", { name: "Comment on line 1" });
  expect(await number.count()).toBe(0);
  await page.getByRole("button", { name: "Comment", exact: true }).tap();
  expect((await number.boundingBox())?.height).toBeGreaterThanOrEqual(44);
  await number.tap();
  await page.getByLabel("Comment", { exact: true }).fill("Say it in French");
  await page.getByRole("button", { name: "Add comment" }).tap();
  await page.getByText("Say it in French").waitFor();
});
