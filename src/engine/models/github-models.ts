import type { CopilotClient } from "@github/copilot-sdk";
import type { ModelFacts } from "./models.ts";

const LIST_MS = 15_000;
/** The assumed ratio of a model's window to its prompt limit, leaving room for the answer. */
const ANSWER = 16_000;

/** The GitHub Copilot models of a token. The runtime caches the list, so a session asks only once. */
export async function listCopilotModels(client: CopilotClient, gitHubToken: string): Promise<ModelFacts[]> {
  const { models } = await within(LIST_MS, client.rpc.models.list({ gitHubToken }));
  const names = models.map(({ id, name, capabilities }): ModelFacts => {
    const { max_prompt_tokens: prompt, max_context_window_tokens: window } = capabilities?.limits ?? {};
    const most = Math.min(window || Number.POSITIVE_INFINITY, prompt ? prompt + ANSWER : Number.POSITIVE_INFINITY);
    const { vision } = capabilities?.supports ?? {};
    return { id, name, ...(Number.isFinite(most) && { window: most }), ...(vision !== undefined && { vision }) };
  });
  // "auto" leaves the choice to GitHub, so it is never the first substitute.
  return [...names.filter(({ id }) => id !== "auto"), ...names.filter(({ id }) => id === "auto")];
}

/** Thrown when something took too long. */
export class Late extends Error {}

/** Rejects after this time. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new Late(`it did not answer within ${Math.round(ms / 1000)} s`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
