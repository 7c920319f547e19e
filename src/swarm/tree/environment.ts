const SECRET = /TOKEN|SECRET|PASSWORD|API_?KEY|CREDENTIAL|PRIVATE_?KEY|^COPILOT_|^TELEGRAM_|^IO_|^ISSUE_BODY$|^GIT_/i;

/** What git and a project's own commands get to know: nothing that looks like a secret, and not the request. */
export function plainEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => name === "GIT_EXEC_PATH" || !SECRET.test(name)));
}
