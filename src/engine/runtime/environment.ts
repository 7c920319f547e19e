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

/** The runtime gets what a program needs, and no secret but its own. */
export function runtimeEnvironment(
  env: NodeJS.ProcessEnv,
  folder: string,
  gitHubHost: string | undefined,
): Record<string, string | undefined> {
  const kept = Object.fromEntries(HANDED_ON.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
  // Offline for GitHub Copilot too: a session with its own token still works, and nothing else is sent.
  const programs = { PATH: lastingPath(env), ...WITHOUT_GIT };
  return {
    ...kept,
    ...programs,
    COPILOT_HOME: folder,
    COPILOT_OFFLINE: "true",
    ...(gitHubHost && { COPILOT_GH_HOST: gitHubHost }),
  };
}
