import { messageOf } from "../lib/errors.ts";
import type { RuntimeTrouble, TurnError } from "./failures.ts";
import type { GitHubLogin } from "./github.ts";
import { Late, listCopilotModels, within } from "./github-models.ts";
import { ListFailed } from "./model-list.ts";
import type { ModelFacts } from "./models.ts";
import type { Runtime } from "./runtime.ts";

export interface GitHubAccessDeps {
  runtime: Runtime;
  login: GitHubLogin | undefined;
  troubled: (trouble: RuntimeTrouble) => TurnError;
}

const OPEN_MS = 25_000;

/** What the runtime asks GitHub, with deadlines: a question that hangs would hold up every later one of the same runtime for minutes. */
export function createGitHubAccess({ runtime, login, troubled }: GitHubAccessDeps) {
  async function inTime<T>(asked: () => Promise<T>): Promise<T> {
    try {
      return await asked();
    } catch (error) {
      if (error instanceof Late) await runtime.replace(await runtime.life());
      throw error;
    }
  }

  return {
    /** The models that the login may use. Throws `ListFailed`. */
    async models(): Promise<ModelFacts[]> {
      try {
        return await inTime(async () => listCopilotModels((await runtime.life()).client, login?.token ?? ""));
      } catch (error) {
        throw new ListFailed(troubled({ message: messageOf(error) }));
      }
    },
    /** Opens a session, which asks GitHub something only where there is a login. */
    opening: <T>(open: () => Promise<T>): Promise<T> => (login ? inTime(() => within(OPEN_MS, open())) : open()),
  };
}
