import type { InjectionKey } from "vue";

/** What was typed before the scripts had come. */
export interface Typed {
  text: string;
  hasFocus: boolean;
  selection: [number, number];
  /** Whether it was to be sent. */
  isSent: boolean;
}

/** Hands over, once, what stands in the field that the daemon put into the page; must be asked before that field goes. */
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
    /** To be called right before the field goes. */
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
