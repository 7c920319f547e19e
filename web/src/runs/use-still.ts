import { computed, onScopeDispose, ref, type ShallowRef, shallowRef, watch } from "vue";

/** Known rows keep their positions, and of the new rows only those after all known ones are added. */
export function stillRows<T>(known: readonly T[], now: readonly T[], keyOf: (row: T) => string): T[] {
  const byKey = new Map<string, T>(now.map((row) => [keyOf(row), row]));
  const kept = known.flatMap((row) => (byKey.has(keyOf(row)) ? [byKey.get(keyOf(row)) as T] : []));
  const last = now.findLastIndex((row) => kept.includes(row));
  return [...kept, ...now.slice(last + 1)];
}

/**
 * Rows that hold still while the pointer is over them or the keyboard focus is inside: new rows in between have to wait.
 * Content that grows above does not move them away from the pointer either.
 */
export function useStill<T>(place: Readonly<ShallowRef<HTMLElement | null>>, now: () => readonly T[], keyOf: (row: T) => string) {
  const rows = shallowRef(now());
  const isOver = ref(false);
  const isReached = ref(false);
  const isStill = computed(() => isOver.value || isReached.value);
  watch([now, isStill], ([next]) => {
    rows.value = isStill.value ? stillRows(rows.value, next, keyOf) : next;
  });

  let top = 0;
  const look = () => {
    top = place.value?.getBoundingClientRect().top ?? 0;
  };
  const sizes = new ResizeObserver(() => {
    const moved = (place.value?.getBoundingClientRect().top ?? 0) - top;
    if (isStill.value && moved !== 0) view?.scrollBy(0, moved);
    look();
  });
  let view: HTMLElement | null | undefined;
  const leave = () => {
    sizes.disconnect();
    view?.removeEventListener("scroll", look);
  };
  watch(
    place,
    (here) => {
      leave();
      view = here?.closest("main");
      view?.addEventListener("scroll", look);
      for (const part of view?.children ?? []) sizes.observe(part);
    },
    { flush: "post" },
  );
  onScopeDispose(leave);
  return {
    rows,
    waiting: computed(() => now().length - rows.value.length),
    hold: {
      onPointerenter: () => {
        isOver.value = true;
      },
      onPointerleave: () => {
        isOver.value = false;
      },
      onFocusin: ({ target }: FocusEvent) => {
        isReached.value = (target as Element).matches(":focus-visible");
      },
      onFocusout: () => {
        isReached.value = false;
      },
    },
  };
}
