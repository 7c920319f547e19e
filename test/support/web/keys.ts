import type { Locator, Page } from "playwright-core";

const MOST_STEPS = 120;

/** A hand on the keyboard and none on the mouse. */
export function hands(page: Page) {
  const { keyboard } = page;
  const holds = (target: Locator) => target.evaluate((element) => element === element.ownerDocument.activeElement);
  const now = () =>
    page.evaluate("document.activeElement?.getAttribute('aria-label') || document.activeElement?.textContent") as Promise<string>;
  const hand = {
    press: (...keys: string[]) => keys.reduce((before, key) => before.then(() => keyboard.press(key)), Promise.resolve()),
    type: (text: string) => keyboard.type(text),
    holds,
    /** Goes on with Tab (or back with Shift+Tab) until this has the focus. */
    async reach(target: Locator, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
      await target.waitFor();
      for (let step = 0; step < MOST_STEPS; step += 1) {
        if (await holds(target)) return;
        await keyboard.press(key);
      }
      throw new Error(`Tab does not reach ${target}; it is at "${await now()}"`);
    },
    /** Reaches something and presses Enter on it. */
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
