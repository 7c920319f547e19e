import { messageOf } from "../../lib/errors.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { RuntimeTrouble, TurnError } from "./failures.ts";
import type { GitHubLogin } from "./github.ts";
import { Late, listCopilotModels, within } from "./github-models.ts";
import { ListFailed } from "./list.ts";
import type { ModelFacts } from "./models.ts";

export interface GitHubAccessDeps {
  runtime: Runtime;
  login: GitHubLogin | undefined;
  troubled: (trouble: RuntimeTrouble) => TurnError;
}

const OPEN_MS = 25_000;

/** Requests through the runtime to GitHub, with deadlines: a hanging one would block all later ones for minutes. */
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
    /** Opens a session; this contacts GitHub only if there is a login. */
    opening: <T>(open: () => Promise<T>): Promise<T> => (login ? inTime(() => within(OPEN_MS, open())) : open()),
  };
}
