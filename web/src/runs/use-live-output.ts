import { onScopeDispose, ref } from "vue";
import type { RunStepDetail } from "../../../src/protocol/runs.ts";
import { at, get } from "../lib/api.ts";

/** How many characters are kept, from the end. */
const MOST = 64_000;
const EVERY_MS = 700;

/**
 * The output of a running step, from the start as far as the daemon keeps it. It is polled for new text: a stream of its own
 * would use one of the six connections that a browser allows.
 */
export function useLiveOutput(run: string, key: string) {
  const output = ref("");
  let heard = 0;
  let isOver = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  async function ask(): Promise<void> {
    const path = `${at("runs", run)}/step?key=${encodeURIComponent(key)}&after=${heard}`;
    // If this fails, it is retried; the banner says that the daemon is unreachable.
    const step = await get<RunStepDetail>(path).catch(() => undefined);
    if (isOver) return;
    if (step?.said) {
      // If the daemon has dropped the earlier text, or has restarted, the output starts again.
      output.value = `${step.said.from === heard ? output.value : ""}${step.said.text}`.slice(-MOST);
      heard = step.said.from + step.said.text.length;
    }
    if (step === undefined || step.state === "begun") timer = setTimeout(() => void ask(), EVERY_MS);
  }
  void ask();
  onScopeDispose(() => {
    isOver = true;
    clearTimeout(timer);
  });
  return output;
}
