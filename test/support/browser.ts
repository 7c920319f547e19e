import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, onTestFinished } from "vitest";
import { launchBrowser } from "./chromium.ts";
import type { TestDaemon } from "./daemon.ts";

export interface Window {
  page: Page;
  context: BrowserContext;
  /** Console errors and warnings, and uncaught page errors. */
  complaints: string[];
  /** Requested URLs that do not belong to the daemon. */
  foreign: string[];
}

export interface WindowOptions {
  width?: number;
  theme?: "light" | "dark";
  signedIn?: boolean;
  path?: string;
  /** Emulates a touch screen instead of a mouse. */
  touch?: boolean;
}

/** Opens a window with its own cookie jar, signed in unless `signedIn` is false. */
export async function openWindow(browser: Browser, daemon: TestDaemon, options: WindowOptions = {}): Promise<Window> {
  const { width = 1280, theme = "light", signedIn = true, path = "/", touch = false } = options;
  const context = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: theme,
    locale: "en-GB",
    hasTouch: touch,
    isMobile: touch,
  });
  onTestFinished(() => context.close());
  context.setDefaultTimeout(20_000);
  if (signedIn) await context.request.post(`${daemon.url}/api/login`, { data: { token: daemon.token } });
  const page = await context.newPage();
  const complaints: string[] = [];
  const foreign: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (/^https?:$/.test(url.protocol) && url.origin !== daemon.url) foreign.push(request.url());
  });
  await page.goto(daemon.url + path);
  return { page, context, complaints, foreign };
}

/** Returns a function that starts one browser for the whole test file. The browser is closed after the file's last test. */
export function fileBrowser(): () => Promise<Browser> {
  let started: Promise<Browser> | undefined;
  afterAll(async () => void (await (await started)?.close()));
  return () => {
    started ??= launchBrowser();
    return started;
  };
}
