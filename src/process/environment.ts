import type { Redactor } from "../lib/redact.ts";

const SECRET_NAME =
  /TOKEN|SECRET|PASSW(OR)?D|PASSPHRASE|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIAL|_AUTH$|_AUTH_?(HEADER|BASIC)|^COPILOT_|^TELEGRAM_|^IO_CALL$/i;
/** Credentials inside an address, as in https://user:password@host. */
const LOGIN_IN_ADDRESS = /:\/\/[^\s/@?#:]*:[^\s/@?#]+@/;
/** A long word of mixed-case letters and digits: not a path, a list or a hexadecimal hash. */
const RANDOM_WORD = /^(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])(?=[^0-9]*[0-9])[A-Za-z0-9+_=-]{32,512}$/;
const WITHHELD = /^(?:IO_|ISSUE_BODY$|GIT_(?!EXEC_PATH$|LFS_SKIP_SMUDGE$))/;
const MAX_LENGTH = 100_000;

/** Disables pagers and password prompts, since nobody is at the terminal. */
export const UNATTENDED = { PAGER: "cat", GIT_PAGER: "cat", GIT_TERMINAL_PROMPT: "0" };

/** Whether a variable's name says that it is a secret. */
export const isSecretName = (name: string) => SECRET_NAME.test(name);

/**
 * The environment of every program that a model can control: without variables that are named like a secret, contain a known
 * one, or look like one. Variables that only the user can set (`LD_PRELOAD`, `NODE_OPTIONS`, `BASH_ENV`) stay.
 */
export function cleanEnvironment(env: NodeJS.ProcessEnv, redactor: Redactor): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(
    ([name, value]) => value !== undefined && !isSecretName(name) && !containsSecret(value, redactor),
  );
  return { ...Object.fromEntries(kept), ...UNATTENDED };
}

/**
 * The environment of git and project commands: also without IO's own variables, the request's text and variables that redirect
 * git.
 */
export function projectEnvironment(env: NodeJS.ProcessEnv, redactor: Redactor): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(cleanEnvironment(env, redactor)).filter(([name]) => !WITHHELD.test(name)));
}

/**
 * Stops git from treating a folder as a bare repository just because it looks like one. Any project can contain such a folder,
 * with settings that name programs to run.
 */
export function withoutEmbeddedRepositories<T extends NodeJS.ProcessEnv>(env: T): T & { GIT_CONFIG_COUNT: string } {
  const count = Number(env.GIT_CONFIG_COUNT) || 0;
  const setting = { [`GIT_CONFIG_KEY_${count}`]: "safe.bareRepository", [`GIT_CONFIG_VALUE_${count}`]: "explicit" };
  return { ...env, ...setting, GIT_CONFIG_COUNT: String(count + 1) };
}

function containsSecret(value: string, redactor: Redactor): boolean {
  return (
    value.length > MAX_LENGTH || redactor.clean(value) !== value || LOGIN_IN_ADDRESS.test(value) || RANDOM_WORD.test(value.trim())
  );
}
