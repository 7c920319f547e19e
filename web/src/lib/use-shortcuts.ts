import { onBeforeUnmount, onMounted, ref } from "vue";
import { isTaken } from "./keys.ts";
import { useRouter } from "./router.ts";

const GO: Record<string, string> = { i: "/inbox", c: "/chat/main", s: "/squads", t: "/tasks", r: "/runs", w: "/wiki" };
/** How long after `g` the second key may follow. */
const TOGETHER_MS = 1_500;

/** The shortcuts that work in every view, and which of their two dialogs is open. */
export function useShortcuts() {
  const router = useRouter();
  const opened = ref<"palette" | "keys">();
  let went = Number.NEGATIVE_INFINITY;

  function press(event: KeyboardEvent): void {
    // A confirmation must be answered first.
    if (document.querySelector("[role=alertdialog]")) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      opened.value = opened.value === "palette" ? undefined : "palette";
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || opened.value !== undefined || isTaken(event)) return;
    const place = event.timeStamp - went < TOGETHER_MS ? GO[event.key] : undefined;
    went = event.key === "g" ? event.timeStamp : Number.NEGATIVE_INFINITY;
    if (place !== undefined) void router.push(place);
    else if (event.key === "?") opened.value = "keys";
    else if (event.key === "/") toField(event);
  }
  function toField(event: KeyboardEvent): void {
    const field = document.querySelector<HTMLElement>("main [type=search], main textarea, main input");
    if (!field) return;
    field.focus();
    event.preventDefault();
  }
  onMounted(() => document.addEventListener("keydown", press));
  onBeforeUnmount(() => document.removeEventListener("keydown", press));
  return opened;
}
