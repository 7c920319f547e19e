import { nextTick, onBeforeUnmount, onMounted, ref, type ShallowRef } from "vue";

/** How far from the end counts as the end, once a person has scrolled. */
const NEAR = 40;

/** Keeps the end in sight while the reader is there. Only the reader's own scrolling decides that, never what is drawn. */
export function useFollow(scroller: Readonly<ShallowRef<HTMLElement | null>>) {
  const following = ref(true);
  let byHand = Number.NEGATIVE_INFINITY;
  const touched = () => {
    byHand = performance.now();
  };
  const scrolled = () => {
    const element = scroller.value;
    if (!element || performance.now() - byHand > 1_000) return;
    following.value = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
  };
  const INPUTS = ["wheel", "touchmove", "pointerdown", "keydown"];
  onMounted(() => {
    for (const name of INPUTS) scroller.value?.addEventListener(name, touched, { passive: true });
    scroller.value?.addEventListener("scroll", scrolled, { passive: true });
  });
  onBeforeUnmount(() => {
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
