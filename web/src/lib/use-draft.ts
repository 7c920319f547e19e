import { type Ref, ref, watch } from "vue";

/** Text that was typed but not sent. It stays in this window under its name, whatever the user does meanwhile. */
export function useDraft(name: string): Ref<string> {
  const key = `io.typed.${name}`;
  const words = ref(sessionStorage.getItem(key) ?? "");
  const keep = (now: string) => (now === "" ? sessionStorage.removeItem(key) : sessionStorage.setItem(key, now));
  // Saved synchronously, because the component may be gone right after the field is emptied.
  watch(words, keep, { flush: "sync" });
  return words;
}
