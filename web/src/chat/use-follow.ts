import { nextTick, onBeforeUnmount, onMounted, ref, type ShallowRef } from "vue";

/** How far from the end counts as the end, once a person has scrolled. */
const NEAR = 40;

/** Keeps the end in sight while the reader is there. Only the reader's own scrolling decides that, never what is drawn. */
export function useFollow(scroller: Readonly<ShallowRef<HTMLElement | null>>) {
  const following = ref(true);
  let byHand = Number.NEGATIVE_INFINITY;
  /** The focus that moves on by Tab may leave the end, but is no wish to stay there. */
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
  /** What stands below the talk may grow and take room from it. */
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
    /** To be called when something was drawn. */
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
