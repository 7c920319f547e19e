import { type Ref, ref, watch } from "vue";

/** Words that were typed and not sent yet: they stay in this window under their name, whatever one does meanwhile. */
export function useDraft(name: string): Ref<string> {
  const key = `io.typed.${name}`;
  const words = ref(sessionStorage.getItem(key) ?? "");
  const keep = (now: string) => (now === "" ? sessionStorage.removeItem(key) : sessionStorage.setItem(key, now));
  // At once: whoever empties a field may be gone in the next moment.
  watch(words, keep, { flush: "sync" });
  return words;
}
