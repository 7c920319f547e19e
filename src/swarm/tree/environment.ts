import { isSecretName } from "../../tools/environment.ts";

const NOT_THEIRS = /^(?:IO_|ISSUE_BODY$|GIT_(?!EXEC_PATH$))/;

/** What git and a project's own commands get to know: nothing that is named like a secret, and not the request. */
export function plainEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isSecretName(name) && !NOT_THEIRS.test(name)));
}
