import { nextTick, onBeforeUnmount, onMounted, type ShallowRef } from "vue";

/** Focuses the first element of something that opens in place, and restores the focus when it closes. */
export function useFocus(first: Readonly<ShallowRef<HTMLElement | null>>): void {
  let before: Element | null = null;
  onMounted(() => {
    before = document.activeElement;
    void nextTick(() => first.value?.focus());
  });
  onBeforeUnmount(() => {
    void nextTick(() => {
      const isLost = document.activeElement === null || document.activeElement === document.body;
      if (isLost && before instanceof HTMLElement && before.isConnected) before.focus();
    });
  });
}
