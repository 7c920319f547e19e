import type { CopilotClient } from "@github/copilot-sdk";
import type { ModelFacts } from "./models.ts";

const LIST_MS = 15_000;
/** How much larger than its prompt limit a model's window is taken to be, for the answer. */
const ANSWER = 16_000;

/** The models that GitHub Copilot has for a token. The runtime keeps what it learns here, so a session asks nothing twice. */
export async function listCopilotModels(client: CopilotClient, gitHubToken: string): Promise<ModelFacts[]> {
  const { models } = await within(LIST_MS, client.rpc.models.list({ gitHubToken }));
  const names = models.map(({ id, name, capabilities }): ModelFacts => {
    const { max_prompt_tokens: prompt, max_context_window_tokens: window } = capabilities?.limits ?? {};
    const most = Math.min(window || Number.POSITIVE_INFINITY, prompt ? prompt + ANSWER : Number.POSITIVE_INFINITY);
    return { id, name, ...(Number.isFinite(most) && { window: most }) };
  });
  // "auto" leaves the choice to GitHub: nobody's first stand-in.
  return [...names.filter(({ id }) => id !== "auto"), ...names.filter(({ id }) => id === "auto")];
}

/** What is thrown when something took too long. */
export class Late extends Error {}

/** Rejects when something takes longer than this. */
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
