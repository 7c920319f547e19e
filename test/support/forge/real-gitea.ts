import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { exec } from "../../../src/process/exec.ts";
import { freePort } from "../free-port.ts";
import { type AtTheEnd, temporaryFolder } from "../home.ts";
import { git } from "../swarm/index.ts";
import { until } from "../until.ts";

const MODULE = "code.gitea.io/gitea";
const VERSION = "v1.26.0";
const CACHE = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "io-tests", `gitea-${VERSION}`);
const BUILD_MS = 7_200_000;

/** Where Go may be: in the PATH, or where its own archive installs it. */
const GO_PLACES = ["go", "/usr/local/go/bin/go"];

/** The binary, and the folder of its module, which contains the options and templates that it reads. Built once per user. */
async function ensureGitea(): Promise<{ binary: string; source: string }> {
  const go = await findGo();
  const env = { ...process.env, GOFLAGS: "-buildvcs=false", PATH: `${process.env.PATH}:${dirname(go)}` };
  const got = await exec(go, ["mod", "download", "-json", `${MODULE}@${VERSION}`], { cwd: "/", env, deadlineMs: BUILD_MS });
  const source = (JSON.parse(got.stdout) as { Dir?: string }).Dir;
  if (source === undefined) throw new Error(`${MODULE} could not be fetched:\n${got.output}`);
  const binary = join(CACHE, "gitea");
  if (existsSync(binary)) return { binary, source };
  mkdirSync(CACHE, { recursive: true });
  // Built under another name and then moved, so that an interrupted build is never mistaken for a complete one.
  const script = `test -x "$1" || { "$2" build -tags "sqlite sqlite_unlock_notify" -ldflags "-s -w" -o "$1.new" . && mv "$1.new" "$1"; }`;
  const args = [join(CACHE, "lock"), "/bin/sh", "-c", script, "build", binary, go];
  const built = await exec("flock", args, { cwd: source, env, deadlineMs: BUILD_MS });
  if (built.code !== 0) throw new Error(`Gitea could not be built:\n${built.output.slice(-4_000)}`);
  return { binary, source };
}

async function findGo(): Promise<string> {
  for (const go of GO_PLACES) {
    const { code, stdout } = await exec(go, ["env", "GOVERSION"], { cwd: "/", env: process.env });
    if (code === 0 && Number(/^go1\.(\d+)/.exec(stdout)?.[1]) >= 21) return go;
  }
  throw new Error("Go 1.21 or later is needed to build Gitea: https://go.dev/doc/install");
}

/** A separate Gitea on loopback, with its database in a temporary folder. */
export interface RealGitea {
  url: string;
  apiUrl: string;
  /** The administrator, whose token IO uses. */
  bot: string;
  token: string;
  tokens: Record<string, string>;
  /** Sends a request as a user. Throws unless it succeeds. */
  ask<T>(as: string, method: string, path: string, body?: unknown): Promise<T>;
  /** Creates a repository of "acme" with a project's content. There, mona is an admin, ted may write, and reader may read. */
  add(name: string, project: string): Promise<void>;
  headOf(repo: string, branch: string): Promise<string | undefined>;
}

const PEOPLE = ["acme", "mona", "ted", "reader", "stranger"];
const PASSWORD = "a-password-of-the-tests-1";

export async function startRealGitea(atTheEnd: AtTheEnd = onTestFinished): Promise<RealGitea> {
  const { binary, source } = await ensureGitea();
  const folder = temporaryFolder(atTheEnd);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  mkdirSync(join(folder, "custom", "conf"), { recursive: true });
  mkdirSync(join(folder, "home"));
  writeFileSync(join(folder, "custom", "conf", "app.ini"), settings({ folder, source, port, url }));
  const env = { PATH: process.env.PATH, HOME: join(folder, "home"), USER: process.env.USER ?? "root", GITEA_WORK_DIR: folder };
  const cli = async (...args: string[]) => {
    const { code, output } = await exec(binary, args, { cwd: folder, env, deadlineMs: 300_000 });
    if (code !== 0) throw new Error(`gitea ${args.slice(0, 3).join(" ")} failed:\n${output}`);
    return output;
  };
  await cli("migrate");
  const tokens: Record<string, string> = {};
  for (const name of ["io-bot", ...PEOPLE]) {
    const who = ["--username", name, "--password", PASSWORD, "--email", `${name}@example.com`, "--must-change-password=false"];
    const isBot = name === "io-bot";
    const said = await cli("admin", "user", "create", ...who, "--access-token", "--access-token-scopes", "all");
    tokens[name] = /created\W+([0-9a-f]{40})/.exec(said)?.[1] ?? "";
    if (tokens[name] === "") throw new Error(`no token was made for ${name}${isBot ? "" : ", a person"}:\n${said}`);
  }
  await serve(binary, { folder, env, url }, atTheEnd);

  async function ask<T>(as: string, method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `token ${tokens[as]}`, "content-type": "application/json", connection: "close" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} as ${as}: ${response.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  return {
    ...{ url, apiUrl: url, bot: "io-bot", token: tokens["io-bot"]!, tokens, ask },
    async add(name, project) {
      await ask("acme", "POST", "/user/repos", { name, default_branch: "main", private: true });
      const rights = { "io-bot": "write", mona: "admin", ted: "write", reader: "read" };
      for (const [who, permission] of Object.entries(rights))
        await ask("acme", "PUT", `/repos/acme/${name}/collaborators/${who}`, { permission });
      const address = new URL(`${url}/acme/${name}.git`);
      git(project, "remote", "add", "origin", address.href);
      Object.assign(address, { username: "acme", password: tokens.acme! });
      git(project, "push", "-q", address.href, "main");
      for (const label of ["bug", "io"])
        await ask("acme", "POST", `/repos/acme/${name}/labels`, { name: label, color: "#00aabb" });
    },
    async headOf(repo, branch) {
      const found = await ask<{ commit: { id: string } }>("acme", "GET", `/repos/${repo}/branches/${branch}`).catch(
        () => undefined,
      );
      return found?.commit.id;
    },
  };
}

const settings = ({ folder, source, port, url }: Record<"folder" | "source" | "url", string> & { port: number }) => `
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
RUN_MODE = prod
RUN_USER = ${process.env.USER ?? "root"}
[database]
DB_TYPE = sqlite3
PATH = ${join(folder, "gitea.db")}
[repository]
ROOT = ${join(folder, "repositories")}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = ${port}
ROOT_URL = ${url}/
DISABLE_SSH = true
OFFLINE_MODE = true
STATIC_ROOT_PATH = ${source}
[security]
INSTALL_LOCK = true
SECRET_KEY = of-the-tests
INTERNAL_TOKEN = of-the-tests
[service]
DISABLE_REGISTRATION = true
[log]
LEVEL = error
[actions]
ENABLED = false
[cron]
ENABLED = false
`;

async function serve(
  binary: string,
  { folder, env, url }: { folder: string; env: NodeJS.ProcessEnv; url: string },
  atTheEnd: AtTheEnd,
): Promise<void> {
  const logFile = join(folder, "web.log");
  const log = openSync(logFile, "w");
  const child: ChildProcess = spawn(binary, ["web"], { cwd: folder, env, stdio: ["ignore", log, log] });
  closeSync(log);
  const isOver = new Promise<void>((over) => child.once("exit", () => over()));
  atTheEnd(async () => {
    child.kill("SIGTERM");
    const late = setTimeout(() => child.kill("SIGKILL"), 10_000);
    await isOver;
    clearTimeout(late);
  });
  const isServing = async () => {
    if (child.exitCode !== null) throw new Error(`Gitea ended:\n${readFileSync(logFile, "utf8").slice(-4_000)}`);
    const answer = await fetch(`${url}/api/v1/version`, { headers: { connection: "close" } }).catch(() => undefined);
    await answer?.body?.cancel();
    return answer?.ok ?? false;
  };
  await until("Gitea to serve", isServing, 120_000);
}
