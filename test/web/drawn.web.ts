import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { fileBrowser, openWindow } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { webDaemon } from "../support/web/seed.ts";

const browser = fileBrowser();
const fence = (text: string) => `\`\`\`mermaid\n${text}\n\`\`\``;
const SIMPLE = fence("flowchart LR\n  order --> invoice --> parcel");
const frameOf = (page: Page) => page.frames().find((each) => each.url().endsWith("/diagram"));
/** Waits until the diagram's image is loaded. */
const isShown = (page: Page) =>
  until("the picture to be there", () =>
    page
      .locator(".diagram img")
      .evaluate((image) => (image as HTMLImageElement).complete && (image as HTMLImageElement).naturalWidth > 100),
  );

test("a diagram in an answer becomes a picture with its text below, formulas are set, and prices are left alone", async () => {
  const daemon = await webDaemon();
  const said = `${SIMPLE}\n\nIt is $a^2+b^2$ or\n\n$$\n\\frac{1}{2}\n$$\n\nand costs $5, or $6 in $HOME/$USER.`;
  await daemon.ask({ text: `repeat: ${said}`, source: "web" });
  const { page, complaints, foreign } = await openWindow(await browser(), daemon);
  const log = page.getByRole("log");
  await log.getByRole("img", { name: "Diagram" }).waitFor();
  await isShown(page);
  expect(decodeURIComponent((await log.locator(".diagram img").getAttribute("src")) ?? "")).toContain("parcel");
  await log.locator(".diagram").getByText("Source").click();
  await log.locator(".diagram pre").getByText("order --> invoice --> parcel").waitFor();
  expect(await log.locator("math").count()).toBe(2);
  expect(await log.locator('math[display="block"] mfrac').count()).toBe(1);
  expect(await log.locator(".answered").textContent()).toContain("and costs $5, or $6 in $HOME/$USER.");
  expect(complaints).toEqual([]);
  expect(foreign).toEqual([]);
});

test("a diagram that is none stays text and says so, and one that is still being written is not drawn", async () => {
  const daemon = await webDaemon();
  await daemon.ask({ text: `repeat: ${fence("flowchart LR\n  a --")}`, source: "web" });
  const { page } = await openWindow(await browser(), daemon);
  await page.getByRole("log").getByText("This diagram could not be drawn").waitFor();
  await page.getByRole("log").locator("pre").getByText("a --").waitFor();
  expect(await page.locator(".diagram").count()).toBe(0);
});

test("a hostile diagram or formula runs nothing, loads nothing, and what draws it has no way out", async () => {
  const daemon = await webDaemon();
  const bad = 'x["<img src=https://elsewhere.invalid/a onerror=parent.postMessage(1,0)><script>top.pwned=1</script>"]';
  const hostile = fence(
    [
      '%%{init: {"securityLevel": "loose", "htmlLabels": true, "flowchart": {"htmlLabels": true}, "themeCSS": "@import url(https://elsewhere.invalid/b); * { background: url(https://elsewhere.invalid/c) }"}}%%',
      `flowchart LR\n  ${bad} --> y`,
      '  click x "javascript:top.pwned=1"\n  click y href "https://elsewhere.invalid/d" _top',
      "  style y fill:url(https://elsewhere.invalid/e)",
    ].join("\n"),
  );
  const formula =
    "$\\href{javascript:window.pwned=1}{x}$ $\\text{<img src=x onerror=window.pwned=1>}$ $\\includegraphics{https://elsewhere.invalid/f}$";
  await daemon.ask({ text: `repeat: ${SIMPLE}\n\n${hostile}\n\n${formula}`, source: "web" });
  const { page, foreign } = await openWindow(await browser(), daemon);
  const log = page.getByRole("log");
  await until("both to be dealt with", async () => (await log.locator(".diagram, .no-diagram").count()) === 2);
  await log.locator("math").first().waitFor();
  const marks = await log.evaluate((element) => ({
    acts: element.querySelectorAll("math [href], math img, .answered script, [onerror], [onload], .diagram svg, .diagram a")
      .length,
    images: [...element.querySelectorAll("img")].filter((image) => !image.src.startsWith("data:image/svg+xml")).length,
  }));
  expect(marks).toEqual({ acts: 0, images: 0 });

  const frame = frameOf(page)!;
  expect(await page.locator("iframe").getAttribute("sandbox")).toBe("allow-scripts");
  const tried = await frame.evaluate(async (home) => {
    const refused = (work: () => unknown) =>
      Promise.resolve()
        .then(work)
        .then(
          () => "open",
          () => "refused",
        );
    return {
      origin: self.origin,
      cookie: await refused(() => document.cookie),
      storage: await refused(() => localStorage.length),
      page: await refused(() => window.parent.document.title),
      api: await refused(() => fetch(`${home}/api/status`)),
      elsewhere: await refused(() => fetch("https://elsewhere.invalid/g")),
      image: await refused(
        () => new Promise((good, bad) => Object.assign(new Image(), { onload: good, onerror: bad, src: `${home}/icon.svg` })),
      ),
      code: await refused(() => new Function("return 1")()),
      window: await refused(() => {
        if (!window.open("https://elsewhere.invalid/h")) throw new Error("none");
      }),
    };
  }, daemon.url);
  expect(tried).toEqual({
    ...{ origin: "null", cookie: "refused", storage: "refused", page: "refused", api: "refused", elsewhere: "refused" },
    ...{ image: "refused", code: "refused", window: "refused" },
  });
  // The page also prevents its frame from being navigated elsewhere.
  await frame.evaluate('location.href = "https://elsewhere.invalid/i?said=everything"').catch(() => undefined);
  await until("the frame to be held", () => page.frames().some((each) => each.url().startsWith("chrome-error:")));
  expect(foreign.filter((url) => !url.includes("/i?"))).toEqual([]);
  expect(await page.evaluate("window.pwned")).toBe(undefined);
});
