import { onScopeDispose, ref, shallowRef } from "vue";
import type { EventType } from "../../../src/protocol/events.ts";
import { useIo } from "../io.ts";
import { get, messageOf } from "../lib/api.ts";

interface Page<T> {
  items: T[];
  next?: string;
}

/**
 * A list loaded page by page while scrolling, newest first. Events reload the first page, whose items replace the known ones;
 * all others stay.
 */
export function usePages<T>(address: () => string, keyOf: (item: T) => string, { on }: { on: readonly EventType[] }) {
  const io = useIo();
  const items = shallowRef<T[]>();
  const error = ref<string>();
  /** Whether the list is loaded to its end. */
  const isWhole = ref(false);
  let next: string | undefined;
  let asked = 0;
  let fetching = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const page = (before?: string) => {
    const path = address();
    return get<Page<T>>(
      `${path}${path.includes("?") ? "&" : "?"}limit=100${before ? `&before=${encodeURIComponent(before)}` : ""}`,
    );
  };
  const reload = async () => {
    asked += 1;
    const mine = asked;
    try {
      const first = await page();
      if (mine !== asked) return;
      const fresh = new Set(first.items.map(keyOf));
      const older = first.next === undefined ? [] : (items.value ?? []).filter((item) => !fresh.has(keyOf(item)));
      if (older.length === 0) next = first.next;
      isWhole.value = next === undefined;
      items.value = [...first.items, ...older];
      error.value = undefined;
    } catch (thrown) {
      error.value = messageOf(thrown);
    }
  };
  const soon = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      void reload();
    }, 150);
  };
  io.on(on, soon);
  io.onReturn(soon);
  onScopeDispose(() => clearTimeout(timer));
  void reload();
  return {
    items,
    error,
    isWhole,
    /** Starts again, for example after the filter has changed. */
    reset(): void {
      items.value = undefined;
      next = undefined;
      void reload();
    },
    async more(): Promise<void> {
      if (next === undefined || fetching) return;
      fetching = true;
      const mine = asked;
      try {
        const answer = await page(next);
        if (mine !== asked) return;
        next = answer.next;
        isWhole.value = next === undefined;
        items.value = [...(items.value ?? []), ...answer.items];
      } catch (thrown) {
        error.value = messageOf(thrown);
      } finally {
        fetching = false;
      }
    },
  };
}
