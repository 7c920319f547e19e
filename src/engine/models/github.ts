import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { exec } from "../../process/exec.ts";
import { findPrograms, type ProgramName } from "../../process/programs.ts";

/** A login for GitHub Copilot. */
export interface GitHubLogin {
  token: string;
  /** Its name for people, such as "the token of GH_TOKEN" or "the Copilot CLI's login of mona". */
  name: string;
  /** The variable it was read from, if any. */
  variable?: string;
  /** Set if it is not github.com, such as example.ghe.com. */
  host?: string;
}

export interface FoundLogin {
  login?: GitHubLogin;
  /** Why apparent logins cannot be used: clauses that can end a sentence. */
  passedOver: string[];
}

const VARIABLES = ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"] as const;
const GITHUB = "https://github.com";
const KEYCHAIN_MS = 5_000;

/** Finds the first usable login, without the network: the variables in order, the token in config.json, the Copilot CLI's. */
export async function findGitHubLogin(env: NodeJS.ProcessEnv, configured?: string): Promise<FoundLogin> {
  const passedOver: string[] = [];
  for (const name of VARIABLES) {
    const token = env[name]?.trim();
    if (!token) continue;
    if (!token.startsWith("ghp_")) {
      const host = env.COPILOT_GH_HOST || env.GH_HOST;
      return { login: { token, name: `the token of ${name}`, variable: name, ...elsewhere(host) }, passedOver };
    }
    passedOver.push(
      `${name} holds a classic token (ghp_…), which GitHub Copilot does not take: use a fine-grained one with the permission "Copilot Requests"`,
    );
  }
  if (configured)
    return {
      login: { token: configured, name: "the token of config.json", ...elsewhere(env.COPILOT_GH_HOST || env.GH_HOST) },
      passedOver,
    };
  const stored = await storedLogin(env);
  if (typeof stored === "string") passedOver.push(stored);
  return { ...(typeof stored === "object" && { login: stored }), passedOver };
}

const Account = z.looseObject({ host: z.string().default(GITHUB), login: z.string() });
const Tokens = z.record(
  z.string(),
  z.union([z.string(), z.looseObject({ token: z.string(), expiresAt: z.string().optional() })]),
);
/** The Copilot CLI's file, under the names that its versions have used. */
const CliConfig = z.looseObject({
  loggedInUsers: z.array(Account).optional(),
  logged_in_users: z.array(Account).optional(),
  lastLoggedInUser: Account.optional(),
  last_logged_in_user: Account.optional(),
  authTokens: Tokens.optional(),
  copilotTokens: Tokens.optional(),
  copilot_tokens: Tokens.optional(),
});

/** The Copilot CLI's login, or why it cannot be used; undefined if nobody is logged in. */
async function storedLogin(env: NodeJS.ProcessEnv): Promise<GitHubLogin | string | undefined> {
  const file = join(env.COPILOT_HOME || join(env.HOME || homedir(), ".copilot"), "config.json");
  if (!existsSync(file)) return undefined;
  const config = readConfig(file);
  if (!config) return "the Copilot CLI's config.json cannot be read: run `copilot login` again, or set COPILOT_GITHUB_TOKEN";
  const account =
    config.lastLoggedInUser ?? config.last_logged_in_user ?? (config.loggedInUsers ?? config.logged_in_users ?? [])[0];
  if (!account) return undefined;

  const name = `the Copilot CLI's login of ${account.login}`;
  const key = `${account.host}:${account.login}`;
  const tokens = { ...config.copilot_tokens, ...config.copilotTokens, ...config.authTokens };
  const kept = tokens[key] ?? tokens[`${key}:github`];
  const { token, expiresAt } = typeof kept === "object" ? kept : { token: kept, expiresAt: undefined };
  if (expiresAt !== undefined && Date.parse(expiresAt) <= Date.now())
    return `${name} has expired: run \`copilot login\` again, or set COPILOT_GITHUB_TOKEN`;
  const secret = token || (await fromKeychain(key, env));
  if (!secret)
    return `the token of ${name} is neither in its config.json nor to be had from the system's keychain: set COPILOT_GITHUB_TOKEN`;
  return { token: secret, name, ...elsewhere(account.host) };
}

function readConfig(file: string): z.infer<typeof CliConfig> | undefined {
  try {
    const text = readFileSync(file, "utf8").replace(/^[ \t]*\/\/.*$/gm, "");
    return CliConfig.parse(JSON.parse(text));
  } catch {
    // Not the CLI's file, truncated, or from an unknown version.
    return undefined;
  }
}

/** Reads the token that the CLI saved in the system's keychain. Gives up after `KEYCHAIN_MS`, so a dialog does not block it. */
async function fromKeychain(account: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const lookUp: Partial<Record<NodeJS.Platform, [ProgramName, ...string[]]>> = {
    linux: ["secret-tool", "lookup", "service", "copilot-cli", "username", account],
    darwin: ["security", "find-generic-password", "-s", "copilot-cli", "-a", account, "-w"],
  };
  const [name, ...args] = lookUp[process.platform] ?? [];
  const program = name && findPrograms({ env, closed: [] }).find(name).path;
  if (program === undefined) return undefined;
  const { PATH, HOME, DBUS_SESSION_BUS_ADDRESS, XDG_RUNTIME_DIR } = env;
  const { code, stdout } = await exec(program, args, {
    env: { PATH, HOME, DBUS_SESSION_BUS_ADDRESS, XDG_RUNTIME_DIR },
    deadlineMs: KEYCHAIN_MS,
  });
  return code === 0 ? stdout.trim() || undefined : undefined;
}

function elsewhere(host: string | undefined): { host?: string } {
  const name = host?.replace(/^https?:\/\//, "").split("/", 1)[0];
  return name && name !== "github.com" ? { host: name } : {};
}
