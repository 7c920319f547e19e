import type { Locator, Page } from "playwright-core";

const MOST_STEPS = 120;

/** Uses a page by keyboard only. */
export function hands(page: Page) {
  const { keyboard } = page;
  const holds = (target: Locator) => target.evaluate((element) => element === element.ownerDocument.activeElement);
  const now = () =>
    page.evaluate("document.activeElement?.getAttribute('aria-label') || document.activeElement?.textContent") as Promise<string>;
  const hand = {
    press: (...keys: string[]) => keys.reduce((before, key) => before.then(() => keyboard.press(key)), Promise.resolve()),
    type: (text: string) => keyboard.type(text),
    holds,
    /** Presses Tab (or Shift+Tab to go back) until the target has the focus. */
    async reach(target: Locator, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
      await target.waitFor();
      for (let step = 0; step < MOST_STEPS; step += 1) {
        if (await holds(target)) return;
        await keyboard.press(key);
      }
      throw new Error(`Tab does not reach ${target}; it is at "${await now()}"`);
    },
    /** Moves the focus to the target and presses Enter, or another key. */
    async use(target: Locator, key: "Enter" | "Space" = "Enter"): Promise<void> {
      await hand.reach(target);
      await keyboard.press(key);
    },
    async fill(target: Locator, text: string): Promise<void> {
      await hand.reach(target);
      await keyboard.press("Control+a");
      await keyboard.type(text);
    },
  };
  return hand;
}
