import { onScopeDispose, ref, type ShallowRef, shallowRef, watch } from "vue";
import type { EventType } from "../../../src/protocol/events.ts";
import { useIo } from "../io.ts";
import { messageOf } from "../lib/api.ts";

export interface Loaded<T> {
  data: ShallowRef<T | undefined>;
  error: ShallowRef<string | undefined>;
  reload(): Promise<void>;
}

/**
 * What a view shows, asked for at once and again whenever news of these types comes. An answer that is overtaken by a later
 * question is thrown away.
 */
export function useLoaded<T>(
  load: () => Promise<T>,
  {
    on = [],
    of,
    again = () => undefined,
  }: { on?: readonly EventType[]; of?: (data: unknown) => boolean; again?: () => unknown } = {},
): Loaded<T> {
  const io = useIo();
  const data = shallowRef<T>();
  const error = shallowRef<string>();
  const busy = ref(false);
  let asked = 0;
  let answered = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const reload = async () => {
    const mine = ++asked;
    busy.value = true;
    try {
      const answer = await load();
      if (mine < answered) return;
      answered = mine;
      data.value = answer;
      error.value = undefined;
    } catch (thrown) {
      if (mine === asked) error.value = messageOf(thrown);
    } finally {
      busy.value = false;
    }
  };
  const soon = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      void reload();
    }, 120);
  };
  if (on.length > 0) io.on(on, (event) => (of === undefined || of(event.data)) && soon());
  io.onReturn(soon);
  watch(again, (now, before) => {
    if (now === before) return;
    data.value = undefined;
    void reload();
  });
  onScopeDispose(() => clearTimeout(timer));
  void reload();
  return { data, error, reload };
}
