import { type Ref, ref, watch } from "vue";
import { useRouter } from "./router.ts";

/** Whether a form is open: by its button, or by an address with `word` as a query, also from within its own view. */
export function useOpenForm(word: string): Ref<boolean> {
  const router = useRouter();
  const isAsked = () => word in router.place.query;
  const isOpen = ref(isAsked());
  watch(isAsked, (now) => {
    isOpen.value = now;
  });
  // At once: whoever closes it may be on the way to another place.
  watch(
    isOpen,
    (now) => {
      if (now || !isAsked()) return;
      history.replaceState(history.state, "", router.place.path);
      void router.push(router.place.path);
    },
    { flush: "sync" },
  );
  return isOpen;
}
