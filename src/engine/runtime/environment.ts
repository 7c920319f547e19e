import { lastingPath } from "../../process/programs.ts";

const PROXIES = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"];
const HANDED_ON = [
  "HOME",
  "TMPDIR",
  "LANG",
  "LC_ALL",
  "TZ",
  ...PROXIES.flatMap((name) => [name, name.toLowerCase()]),
  "SSL_CERT_FILE",
  "NODE_EXTRA_CA_CERTS",
  "SystemRoot",
  "APPDATA",
  "LOCALAPPDATA",
  "USERPROFILE",
  "COPILOT_DEBUG_GITHUB_API_URL",
];

/** The runtime runs git in a session's folder outside the sandbox: it must find no repository and no settings. */
const WITHOUT_GIT = {
  GIT_DIR: "/dev/null",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_SYSTEM: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
};

/** Builds the runtime's environment: the variables that programs need, and no keys or tokens. */
export function runtimeEnvironment(
  env: NodeJS.ProcessEnv,
  folder: string,
  gitHubHost: string | undefined,
): Record<string, string | undefined> {
  const kept = Object.fromEntries(HANDED_ON.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
  // Offline mode stops everything else that the runtime would send. A session that has its own token still reaches Copilot.
  const programs = { PATH: lastingPath(env), ...WITHOUT_GIT };
  return {
    ...kept,
    ...programs,
    COPILOT_HOME: folder,
    COPILOT_OFFLINE: "true",
    ...(gitHubHost && { COPILOT_GH_HOST: gitHubHost }),
  };
}
