import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { renameSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type AtTheEnd, temporaryFolder } from "../home.ts";
import { makeBare, serveGit } from "./git-http.ts";
import { type ForgeRepo, newRepo } from "./state.ts";

/** A request to the API or the git server of a fake forge. */
export interface ForgeCall {
  /** Such as "POST /repos/acme/widget/pulls" or "POST git-receive-pack". */
  what: string;
  status: number;
  authorization: string | undefined;
}

export interface Asked {
  method: string;
  /** Relative to the API's base path. */
  path: string;
  query: URLSearchParams;
  body: unknown;
  user: string;
  repo: ForgeRepo;
  repoName: string;
  headOf: (repo: string, branch: string) => string | undefined;
  hasCommit: (repo: string, commit: string) => boolean;
  url: string;
}
export interface Reply {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
  text?: string;
}

/** One forge's part of the API, for paths below a repository. */
export interface Dialect {
  api: string;
  answer(asked: Asked, rest: string): Reply | undefined;
  /** Completes an answer. Throws if it or the request does not match the forge's description. */
  check?(asked: Asked, reply: Reply): Reply;
}

export interface ForgeDouble {
  url: string;
  apiUrl: string;
  calls: ForgeCall[];
  /** The requests that change something. */
  changes(): string[];
  tokens: Record<string, string>;
  repos: Record<string, ForgeRepo>;
  /** Errors in the fake forge or in requests to it. Tests expect none. */
  faults: string[];
  /** Creates a repository from a checkout. */
  add(name: string, from: string, permissions?: ForgeRepo["permissions"], protect?: readonly string[]): ForgeRepo;
  headOf(repo: string, branch: string): string | undefined;
  /** The path of a repository. */
  bareOf(repo: string): string;
  /** Called before and after each request, which waits for it to resolve; "lose" closes the connection without an answer. */
  intercept: (what: string, moment: "before" | "after") => Promise<"lose" | undefined> | undefined;
  /** May return an answer that replaces the fake forge's own. */
  instead: (what: string) => Reply | undefined;
  renamed: Record<string, string>;
  /** Renames a repository. The API and git redirect from its old name. */
  rename(from: string, to: string): void;
}

export const TOKEN = "ghx-forge-token-0123456789abcdef";

export async function startForge(dialect: Dialect, atTheEnd: AtTheEnd = onTestFinished): Promise<ForgeDouble> {
  const root = temporaryFolder(atTheEnd);
  const double: ForgeDouble = {
    ...{ url: "", apiUrl: "", calls: [], faults: [], repos: {}, renamed: {}, tokens: { [TOKEN]: "io-bot" } },
    changes: () => double.calls.map(({ what }) => what).filter((what) => /^(?:POST|PATCH|PUT|DELETE) /.test(what)),
    intercept: () => undefined,
    instead: () => undefined,
    add(name, from, permissions = { "io-bot": "write", mona: "admin", ted: "write", reader: "read" }, protect = []) {
      makeBare(root, name, from, protect);
      double.repos[name] = newRepo(permissions);
      return double.repos[name];
    },
    bareOf: (repo) => join(root, `${repo}.git`),
    rename(from, to) {
      renameSync(join(root, `${from}.git`), join(root, `${to}.git`));
      const { [from]: repo, ...others } = double.repos;
      double.repos = { ...others, [to]: repo! };
      for (const each of repo!.pulls) if (each.headRepo === from) each.headRepo = to;
      double.renamed[from] = to;
    },
    headOf(repo, branch) {
      try {
        const args = ["-C", join(root, `${repo}.git`), "rev-parse", "--verify", "-q", `refs/heads/${branch}`];
        return execFileSync("git", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
      } catch {
        // The branch does not exist.
        return undefined;
      }
    },
  };

  const hasCommit = (repo: string, commit: string) =>
    spawnSync("git", ["-C", join(root, `${repo}.git`), "cat-file", "-e", `${commit}^{commit}`]).status === 0;

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      double.faults.push(String(error));
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  });

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", double.url);
    const { authorization } = request.headers;
    const isApi = url.pathname.startsWith(dialect.api);
    const path = isApi ? url.pathname.slice(dialect.api.length) : url.pathname;
    const service = /\/(git-receive-pack|git-upload-pack)$/.exec(path)?.[1];
    const what = `${request.method} ${service ?? path}`;
    const call: ForgeCall = { what, status: 0, authorization };
    double.calls.push(call);
    if ((await double.intercept(what, "before")) === "lose") return void request.socket.destroy();
    const finish = async (status: number, send: () => void | Promise<void>) => {
      call.status = status;
      if ((await double.intercept(what, "after")) === "lose") return void request.socket.destroy();
      await send();
    };
    const user = userOf(authorization, double.tokens);
    if (!isApi) {
      if (path.startsWith("/logs/")) {
        const checks = Object.values(double.repos).flatMap((each) => each.checks);
        const log = checks.find(({ id }) => id === Number(path.slice(6)))?.log;
        return finish(200, () => void response.end(log || `log of ${path.slice(6)}\nit failed\n`));
      }
      if (user === undefined || !authorization?.startsWith("Basic "))
        return finish(401, () => void response.writeHead(401, { "www-authenticate": "Basic" }).end());
      const [, named = "", below = ""] = /^\/([^/]+\/[^/]+)\.git(\/.*)$/.exec(path) ?? [];
      const moved = double.renamed[named];
      if (moved) {
        const location = `${double.url}/${moved}.git${below}${url.search}`;
        return finish(301, () => void response.writeHead(301, { location }).end());
      }
      await serveGit(root, request, response, user);
      call.status = response.statusCode;
      await double.intercept(what, "after");
      return;
    }
    const body = await readBody(request);
    // Servers that are made from a forge's description answer with nothing else than it lists.
    const takesJson = /application\/json|\*\/\*/.test(request.headers.accept ?? "*/*");
    const send = ({ status, body: answer, headers = {}, text }: Reply) =>
      finish(status, () => {
        response.writeHead(status, { "content-type": text === undefined ? "application/json" : "text/plain", ...headers });
        response.end(text ?? (answer === undefined ? undefined : JSON.stringify(answer)));
      });
    const other = double.instead(what);
    if (other) return send(other);
    if (!takesJson) return send({ status: 406, body: { message: "Not Acceptable" } });
    if (user === undefined) return send({ status: 401, body: { message: "Bad credentials" } });
    const [, first, second, rest = ""] = /^\/repos\/([^/]+)\/([^/]+)(\/.*)?$/.exec(path) ?? [];
    const name = `${first}/${second}`;
    const to = double.renamed[name];
    if (to)
      return send({
        status: 301,
        headers: { location: `${double.apiUrl}/repos/${to}${rest}${url.search}` },
        body: { message: "Moved Permanently" },
      });
    const repo = double.repos[name];
    const hidden: Reply = { status: 404, body: { message: "Not Found" } };
    if (!repo || repo.permissions[user] === undefined) return send(hidden);
    const asked: Asked = {
      ...{ method: request.method ?? "GET", path, query: url.searchParams, body, user, repo, repoName: name },
      ...{ headOf: double.headOf, hasCommit, url: double.url },
    };
    const reply = dialect.answer(asked, rest) ?? hidden;
    const whole = dialect.check?.(asked, reply) ?? reply;
    const etag = `"${createHash("sha256")
      .update(JSON.stringify(whole.body ?? ""))
      .digest("hex")}"`;
    if (asked.method === "GET" && whole.status === 200) {
      if (request.headers["if-none-match"] === etag) return finish(304, () => void response.writeHead(304, { etag }).end());
      return send({ ...whole, headers: { ...whole.headers, etag } });
    }
    return send(whole);
  }

  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  double.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  double.apiUrl = `${double.url}${dialect.api}`;
  atTheEnd(
    () =>
      new Promise<void>((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  );
  return double;
}

/** The owner of a token, in a header of the API or of git. */
function userOf(authorization: string | undefined, tokens: Record<string, string>): string | undefined {
  const [scheme = "", value = ""] = (authorization ?? "").split(" ");
  const token = /^basic$/i.test(scheme) ? Buffer.from(value, "base64").toString("utf8").split(":").slice(1).join(":") : value;
  return tokens[token];
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  return text === "" ? undefined : JSON.parse(text);
}
