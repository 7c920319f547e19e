import { onScopeDispose, type ShallowRef, shallowRef, watch } from "vue";
import type { EventType } from "../../../src/protocol/events.ts";
import { useIo } from "../io.ts";
import { messageOf, Refused } from "../lib/api.ts";

export interface Loaded<T> {
  data: ShallowRef<T | undefined>;
  error: ShallowRef<string | undefined>;
  /** Whether the daemon said that this does not exist. */
  isGone: ShallowRef<boolean>;
  reload(): Promise<void>;
}

/**
 * Loads a view's data at once, and again after events of these types. An outdated response that arrives after a newer one is
 * dropped.
 */
export function useLoaded<T>(
  load: () => Promise<T>,
  {
    on = [],
    of,
    again = () => undefined,
    ready = () => true,
    goneOn,
  }: {
    on?: readonly EventType[];
    of?: (data: unknown) => boolean;
    again?: () => unknown;
    /** Nothing is loaded before this returns true. */
    ready?: () => boolean;
    /** The event that says that this was deleted. It is not requested again then, which browsers would report as an error. */
    goneOn?: EventType;
  } = {},
): Loaded<T> {
  const io = useIo();
  const data = shallowRef<T>();
  const error = shallowRef<string>();
  const isGone = shallowRef(false);
  let asked = 0;
  let answered = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const reload = async () => {
    const mine = ++asked;
    try {
      const answer = await load();
      if (mine < answered) return;
      answered = mine;
      data.value = answer;
      error.value = undefined;
      isGone.value = false;
    } catch (thrown) {
      if (mine !== asked) return;
      error.value = messageOf(thrown);
      isGone.value = thrown instanceof Refused && thrown.status === 404;
    }
  };
  const soon = () => {
    if (!ready()) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      void reload();
    }, 120);
  };
  if (on.length > 0) io.on(on, (event) => (of === undefined || of(event.data)) && soon());
  if (goneOn !== undefined)
    io.on([goneOn], (event) => {
      if (of !== undefined && !of(event.data)) return;
      clearTimeout(timer);
      timer = undefined;
      answered = ++asked;
      isGone.value = true;
    });
  io.onReturn(soon);
  watch(again, (now, before) => {
    if (now === before) return;
    data.value = undefined;
    void reload();
  });
  onScopeDispose(() => clearTimeout(timer));
  watch(ready, (isReady) => isReady && asked === 0 && void reload(), { immediate: true });
  return { data, error, isGone, reload };
}
