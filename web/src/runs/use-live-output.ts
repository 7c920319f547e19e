import { onScopeDispose, ref } from "vue";
import type { RunStepDetail } from "../../../src/protocol/runs.ts";
import { at, get } from "../lib/api.ts";

/** The most that is kept of it: its end. */
const MOST = 64_000;
const EVERY_MS = 700;

/**
 * What a step says and does while it is at work, from its beginning on as far as the daemon keeps it. It is asked for again and
 * again, only what is new: a stream of its own would take one of the six connections that a browser allows.
 */
export function useLiveOutput(run: string, key: string) {
  const output = ref("");
  let heard = 0;
  let isOver = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  async function ask(): Promise<void> {
    const path = `${at("runs", run)}/step?key=${encodeURIComponent(key)}&after=${heard}`;
    // Without an answer it is asked again; the banner says that the daemon is not there.
    const step = await get<RunStepDetail>(path).catch(() => undefined);
    if (isOver) return;
    if (step?.said) {
      // What the daemon no longer keeps, or keeps anew since it was started again, begins afresh.
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
