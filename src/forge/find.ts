import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import type { Git } from "../git/command.ts";
import { remotesOf } from "../git/remote.ts";
import type { Config } from "../home/config.ts";
import { UserError } from "../lib/errors.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import type { Redactor } from "../lib/redact.ts";
import { readSmallYaml } from "../lib/yaml.ts";
import { exec } from "../process/exec.ts";
import type { FoundProgram } from "../process/programs.ts";
import { createGitea } from "./gitea.ts";
import { createGitHub } from "./github.ts";
import type { Forge } from "./port.ts";

/** The repository for a project's pull requests, and the one that its branches are pushed to. */
export interface ForgePlace {
  kind: Forge["kind"];
  /** The host as people call it, such as github.com. */
  host: string;
  apiUrl: string;
  tokenEnv: string | undefined;
  /** `owner/name` of the repository that the pull request is opened in. */
  repo: string;
  /** `owner/name` of the repository that the branch is pushed to. It differs from `repo` if the project is a fork. */
  headRepo: string;
  /** The git URL of `headRepo`, without credentials. */
  gitUrl: string;
  /** The git URL of `repo`, without credentials. */
  baseUrl: string;
}

export interface FinderDeps {
  git: Git;
  config: () => Pick<Config, "github" | "gitea">;
  env: NodeJS.ProcessEnv;
  redactor: Redactor;
  /** Locates the `gh` program. */
  gh: () => FoundProgram;
}

interface Candidate {
  kind: Forge["kind"];
  host: string;
  apiUrl: string;
  tokenEnv: string | undefined;
}

const GITHUB = "https://api.github.com";
const GH_MS = 5_000;
/** The remotes to open pull requests in, by preference. */
const BASES = ["upstream", "origin"];
const HEADS = ["origin", "upstream"];

/** Finds a project's forge and the user's token for it. */
export function createForgeFinder({ git, config, env, redactor, gh }: FinderDeps) {
  async function placeOf(folder: string): Promise<ForgePlace> {
    const candidates = candidatesIn(config());
    const remotes = (await remotesOf(git, folder)).flatMap(({ name, url }) => {
      const address = readAddress(url);
      const forge = address && matching(candidates, address);
      return forge ? [{ name, address, forge }] : [];
    });
    const first = (names: readonly string[]) =>
      names.flatMap((wanted) => remotes.filter(({ name }) => name === wanted))[0] ?? remotes[0];
    const base = first(BASES);
    const head = first(HEADS);
    if (!base || !head)
      throw new UserError(
        `${folder} has no remote on a forge that IO knows. Known are github.com, and what github.apiUrl and gitea.apiUrl in config.json name; "git remote -v" shows the remotes.`,
      );
    const source = head.forge === base.forge ? head : base;
    return {
      ...base.forge,
      repo: base.address.repo,
      headRepo: source.address.repo,
      gitUrl: gitUrlOf(source.address, source.forge.apiUrl),
      baseUrl: gitUrlOf(base.address, base.forge.apiUrl),
    };
  }

  async function tokenFor({ kind, host, tokenEnv }: Candidate): Promise<string> {
    const variables = [tokenEnv, ...(kind === "gitea" ? GITEA_VARIABLES : githubVariables(host))];
    const named = variables.map((name) => (name ? env[name]?.trim() : undefined)).find(Boolean);
    const token = named ?? (kind === "github" ? await loginOfGh(host) : undefined);
    if (!token || /[\s\p{Cc}]/u.test(token)) throw new UserError(noToken(kind, host, tokenEnv));
    redactor.hide(token);
    return token;
  }

  /** Reads the token saved by `gh auth login`, from its file or from the system's keychain. */
  async function loginOfGh(host: string): Promise<string | undefined> {
    const folder = env.GH_CONFIG_DIR || join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config"), "gh");
    const written = smallTextAt(join(folder, "hosts.yml"));
    const read = written === undefined ? undefined : readSmallYaml(written);
    const login = read && "value" in read ? Hosts.safeParse(read.value).data?.[host] : undefined;
    if (login === undefined) return undefined;
    if (login.oauth_token) return login.oauth_token;
    const { path } = gh();
    if (path === undefined) return undefined;
    const { PATH, HOME, XDG_CONFIG_HOME, XDG_RUNTIME_DIR, DBUS_SESSION_BUS_ADDRESS, GH_CONFIG_DIR } = env;
    const { code, stdout } = await exec(path, ["auth", "token", "--hostname", host], {
      cwd: "/",
      env: { PATH, HOME, XDG_CONFIG_HOME, XDG_RUNTIME_DIR, DBUS_SESSION_BUS_ADDRESS, GH_CONFIG_DIR },
      deadlineMs: GH_MS,
    });
    return code === 0 ? stdout.trim() || undefined : undefined;
  }

  return {
    placeOf,
    tokenFor,
    async open(place: ForgePlace, signal?: AbortSignal): Promise<{ forge: Forge; token: string }> {
      const token = await tokenFor(place);
      const deps = { apiUrl: place.apiUrl, repo: place.repo, token, signal };
      return { forge: place.kind === "github" ? createGitHub(deps) : createGitea(deps), token };
    },
  };
}
export type ForgeFinder = ReturnType<typeof createForgeFinder>;

const Hosts = z.record(z.string(), z.looseObject({ oauth_token: z.string().optional() }));
export const GITEA_VARIABLES = ["GITEA_TOKEN", "FORGEJO_TOKEN"];

/** In the order in which `gh` reads them: on an Enterprise server, its own variables come first. */
const githubVariables = (host: string) => [
  ...(host === "github.com" ? [] : ["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"]),
  "GH_TOKEN",
  "GITHUB_TOKEN",
];

function noToken(kind: Forge["kind"], host: string, tokenEnv: string | undefined): string {
  const set = tokenEnv ?? (kind === "gitea" ? GITEA_VARIABLES[0] : "GH_TOKEN");
  const login = kind === "github" ? `, or log in with "gh auth login --hostname ${host}"` : "";
  return `IO has no token for ${host}. Set ${set} where the daemon is started${login}, then "io restart".`;
}

function candidatesIn({ github, gitea }: Pick<Config, "github" | "gitea">): Candidate[] {
  const hostOf = (apiUrl: string) => new URL(apiUrl).host.replace(/^api\./, "");
  return [
    { kind: "github", apiUrl: github.apiUrl, host: hostOf(github.apiUrl), tokenEnv: github.tokenEnv },
    ...(github.apiUrl === GITHUB ? [] : [{ kind: "github" as const, apiUrl: GITHUB, host: "github.com", tokenEnv: undefined }]),
    ...(gitea?.apiUrl
      ? [{ kind: "gitea" as const, apiUrl: gitea.apiUrl, host: hostOf(gitea.apiUrl), tokenEnv: gitea.tokenEnv }]
      : []),
  ];
}

interface Address {
  protocol: string;
  /** Includes the port if git uses HTTP. */
  host: string;
  /** The path in the remote's URL, with a leading slash. */
  path: string;
  repo: string;
}

const NAME = /^[\w.-]{1,100}$/;

/** Parses a git URL. Returns undefined for a local path and for anything else that cannot be a repository on a forge. */
export function readAddress(url: string): Address | undefined {
  const short = /^(?:[\w.-]{1,100}@)?([\w.-]{1,250}):(?!\/\/)([^\s:]{1,500})$/.exec(url);
  const long = short ? undefined : parsedUrl(url);
  const protocol = short ? "ssh:" : long?.protocol;
  if (protocol === undefined || !["https:", "http:", "ssh:", "git:"].includes(protocol)) return undefined;
  const host = (short?.[1] ?? (/^http/.test(protocol) ? long?.host : long?.hostname) ?? "").toLowerCase();
  const path = `/${(short?.[2] ?? long?.pathname ?? "").split("/").filter(Boolean).join("/")}`;
  const [owner = "", name = ""] = path
    .replace(/\.git$/, "")
    .split("/")
    .slice(-2);
  if (![owner, name].every((part) => NAME.test(part) && !/^\.{1,2}$/.test(part))) return undefined;
  return { protocol, host, path, repo: `${owner}/${name}` };
}

function parsedUrl(url: string): URL | undefined {
  try {
    return new URL(url);
  } catch {
    // A local path, or something that git could not reach either.
    return undefined;
  }
}

/**
 * The git URLs of a repository that has been renamed. The forge redirects from the old name, but when git is asked for
 * credentials first, it stays at the old URL.
 */
export function renamed<Place extends Pick<ForgePlace, "repo" | "headRepo" | "gitUrl" | "baseUrl">>(
  place: Place,
  fullName: string,
): Place {
  const { repo, headRepo, gitUrl, baseUrl } = place;
  if (fullName.toLowerCase() === repo.toLowerCase() || !/^[\w.-]+\/[\w.-]+$/.test(fullName)) return place;
  const moved = (url: string) => {
    const at = url.lastIndexOf(`/${repo}`);
    return at < 0 ? url : `${url.slice(0, at)}/${fullName}${url.slice(at + repo.length + 1)}`;
  };
  return { ...place, baseUrl: moved(baseUrl), ...(headRepo === repo && { gitUrl: moved(gitUrl) }) };
}

/** The forge with exactly this host and port, or else one with the same host name, since git may be served on another port. */
function matching(candidates: readonly Candidate[], { host }: Address): Candidate | undefined {
  const name = (each: string) => each.replace(/:\d+$/, "");
  return candidates.find((each) => each.host === host) ?? candidates.find((each) => name(each.host) === name(host));
}

/** The URL that git pushes to. It uses HTTPS unless the user configured the API with HTTP. */
function gitUrlOf({ protocol, host, path, repo }: Address, apiUrl: string): string {
  const api = new URL(apiUrl);
  if (protocol === api.protocol) return `${protocol}//${host}${path}`;
  const root = api.pathname.replace(/\/api\/v\d\/?$/, "").replace(/\/$/, "");
  return `${api.protocol}//${api.host.replace(/^api\./, "")}${root}/${repo}.git`;
}
