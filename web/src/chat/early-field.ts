import type { InjectionKey } from "vue";

/** What the user typed before the scripts were loaded. */
export interface Typed {
  text: string;
  hasFocus: boolean;
  selection: [number, number];
  /** Whether the user pressed Enter or Send. */
  isSent: boolean;
}

/** Returns, once, what `keep` read from the field that the daemon rendered into the page. */
export type TakeTyped = () => Typed | undefined;
export const TYPED: InjectionKey<TakeTyped> = Symbol("typed");

export function watchEarlyField(): { keep(): void; take: TakeTyped } {
  const form = document.querySelector<HTMLFormElement>("#app form.composer");
  const field = form?.querySelector("textarea");
  let isSent = false;
  let typed: Typed | undefined;
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    isSent = true;
  });
  field?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    isSent = true;
  });
  return {
    /** Must be called right before the field is removed. */
    keep(): void {
      if (!field) return;
      const { value: text, selectionStart, selectionEnd } = field;
      typed = { text, hasFocus: document.activeElement === field, selection: [selectionStart, selectionEnd], isSent };
    },
    take(): Typed | undefined {
      const taken = typed;
      typed = undefined;
      return taken;
    },
  };
}
