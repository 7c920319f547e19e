import { nextTick, onBeforeUnmount, onMounted, ref, type ShallowRef } from "vue";

/** How many pixels from the end still count as the end, after the user has scrolled. */
const NEAR = 40;

/** Keeps the end visible while the reader is at the end. Only the reader's own scrolling changes that, never new content. */
export function useFollow(scroller: Readonly<ShallowRef<HTMLElement | null>>) {
  const following = ref(true);
  let byHand = Number.NEGATIVE_INFINITY;
  /** Moving the focus with Tab may scroll away from the end, but does not mean that the reader wants to stay there. */
  let isTab = false;
  const touched = (event: Event) => {
    byHand = performance.now();
    isTab = event instanceof KeyboardEvent && event.key === "Tab";
  };
  const scrolled = () => {
    const element = scroller.value;
    if (!element || performance.now() - byHand > 1_000) return;
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
    if (!isAtEnd || !isTab) following.value = isAtEnd;
  };
  const INPUTS = ["wheel", "touchmove", "pointerdown", "keydown"];
  /** Elements below the conversation may grow and make it smaller. */
  let sizes: ResizeObserver | undefined;
  onMounted(() => {
    sizes = new ResizeObserver(() => {
      if (following.value) toEnd();
    });
    if (scroller.value) sizes.observe(scroller.value);
    for (const name of INPUTS) scroller.value?.addEventListener(name, touched, { passive: true });
    scroller.value?.addEventListener("scroll", scrolled, { passive: true });
  });
  onBeforeUnmount(() => {
    sizes?.disconnect();
    for (const name of INPUTS) scroller.value?.removeEventListener(name, touched);
    scroller.value?.removeEventListener("scroll", scrolled);
  });
  const toEnd = () => {
    const element = scroller.value;
    if (element) element.scrollTop = element.scrollHeight;
  };
  return {
    following,
    /** Must be called after new content was drawn. */
    async drawn(): Promise<void> {
      if (!following.value) return;
      await nextTick();
      toEnd();
    },
    jump(): void {
      following.value = true;
      toEnd();
    },
  };
}
