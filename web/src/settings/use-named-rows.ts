import { computed, type Ref, ref, watch } from "vue";

export interface NamedRow<T> {
  name: string;
  value: T;
  /** Whether the row was added here, so that its name can still be edited. */
  isNew: boolean;
}

/**
 * Named values as rows that keep their positions while the user types. A new row is included once it has a name or a value; the
 * daemon refuses one without a name.
 */
export function useNamedRows<T>(value: Ref<Record<string, T> | undefined>) {
  const rows = ref([]) as Ref<NamedRow<T>[]>;
  let written: string | undefined;
  watch(
    value,
    (now) => {
      if (written !== undefined && JSON.stringify(now ?? {}) === written) return;
      rows.value = Object.entries(now ?? {}).map(([name, each]) => ({ name, value: each, isNew: false }));
    },
    { immediate: true },
  );
  function keep(next: NamedRow<T>[]): void {
    rows.value = next;
    const said = next.filter(({ name, value: of }) => name.trim() !== "" || Object.keys(Object(of)).length > 0);
    const object = Object.fromEntries(said.map(({ name, value: of }) => [name.trim(), of]));
    written = JSON.stringify(object);
    value.value = said.length === 0 ? undefined : (object as Record<string, T>);
  }
  return {
    rows,
    names: computed(() => rows.value.map(({ name }) => name.trim())),
    /** Whether an earlier row has the same name. */
    isTwice: (index: number) => rows.value.findIndex(({ name }) => name.trim() === rows.value[index]?.name.trim()) < index,
    add: (first: T) => keep([...rows.value, { name: "", value: first, isNew: true }]),
    change: (index: number, part: Partial<NamedRow<T>>) =>
      keep(rows.value.map((row, each) => (each === index ? { ...row, ...part } : row))),
    takeOut: (index: number) => keep(rows.value.filter((_, each) => each !== index)),
  };
}
