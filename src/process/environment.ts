import type { Redactor } from "../lib/redact.ts";

const SECRET_NAME =
  /TOKEN|SECRET|PASSW(OR)?D|PASSPHRASE|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIAL|_AUTH$|_AUTH_?(HEADER|BASIC)|^COPILOT_|^TELEGRAM_|^IO_CALL$/i;

/** Whether a variable is named like a secret. */
export const isSecretName = (name: string) => SECRET_NAME.test(name);

/** The environment without what is named like a secret or holds a known one. */
export function cleanEnvironment(env: NodeJS.ProcessEnv, redactor: Redactor): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(
    ([name, value]) => value !== undefined && !isSecretName(name) && redactor.clean(value) === value,
  );
  return { ...Object.fromEntries(kept), PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0" };
}

const NOT_THEIRS = /^(?:IO_|ISSUE_BODY$|GIT_(?!EXEC_PATH$))/;

/** What git and a project's own commands get to know: nothing that is named like a secret, and not the request. */
export function plainEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isSecretName(name) && !NOT_THEIRS.test(name)));
}
