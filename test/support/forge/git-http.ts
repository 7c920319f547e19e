import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { dirname, join } from "node:path";

const BACKEND = execFileSync("git", ["--exec-path"], { encoding: "utf8" }).trim();

/** Creates a bare copy of a checkout that accepts pushes, except to the branches in `protect`. */
export function makeBare(root: string, repo: string, from: string, protect: readonly string[] = []): string {
  const path = join(root, `${repo}.git`);
  mkdirSync(dirname(path), { recursive: true });
  execFileSync("git", ["clone", "--quiet", "--bare", from, path], { stdio: "ignore" });
  execFileSync("git", ["-C", path, "config", "http.receivepack", "true"]);
  const refused = protect.map((branch) => `refs/heads/${branch}`).join("|") || "none";
  const hook = `#!/bin/sh\ncase "$1" in\n${refused}) echo "protected branch hook declined" >&2; exit 1;;\nesac\n`;
  mkdirSync(join(path, "hooks"), { recursive: true });
  writeFileSync(join(path, "hooks", "update"), hook, { mode: 0o755 });
  return path;
}

/** Serves git over HTTP through git-http-backend. */
export function serveGit(root: string, request: IncomingMessage, response: ServerResponse, user: string): Promise<void> {
  const url = new URL(request.url ?? "/", "http://here");
  const child = spawn(join(BACKEND, "git-http-backend"), [], {
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: "safe.directory",
      GIT_CONFIG_VALUE_0: "*",
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method ?? "GET",
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      CONTENT_LENGTH: request.headers["content-length"] ?? "",
      HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
      GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
      REMOTE_USER: user,
      REMOTE_ADDR: "127.0.0.1",
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  child.stdin.on("error", () => undefined);
  request.pipe(child.stdin);
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  return new Promise((done) => {
    child.once("close", () => {
      const output = Buffer.concat(chunks);
      const end = output.indexOf("\r\n\r\n");
      const head = output.subarray(0, Math.max(0, end)).toString("utf8");
      const headers = Object.fromEntries(
        head
          .split("\r\n")
          .filter(Boolean)
          .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]),
      ) as Record<string, string>;
      const { Status = "200", ...others } = headers;
      response.writeHead(Number(Status.split(" ", 1)[0]), others);
      response.end(output.subarray(end + 4));
      done();
    });
  });
}
