import { request } from "node:http";
import { expect, test } from "vitest";
import type { Message } from "../../src/protocol/messages.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";

/** Sends a request with headers that `fetch` would not send unchanged. */
function raw(
  daemon: TestDaemon,
  path: string,
  headers: Record<string, string>,
  options: { method?: string; body?: string | Buffer } = {},
): Promise<{ status: number; body: string }> {
  const { hostname, port } = new URL(daemon.url);
  return new Promise((done, failed) => {
    const outgoing = request({ hostname, port, path, method: options.method ?? "GET", headers }, (response) => {
      let body = "";
      response.on("data", (chunk) => {
        body += chunk;
      });
      response.on("end", () => done({ status: response.statusCode ?? 0, body }));
    });
    outgoing.on("error", failed);
    // The server may answer and close the connection while a large body is still being sent.
    outgoing.on("socket", (socket) => socket.on("error", () => undefined));
    outgoing.end(options.body);
  });
}

async function start() {
  const model = await scriptedModel(() => ({ say: "never" }));
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  return { model, daemon, json: { "content-type": "application/json", authorization: `Bearer ${daemon.token}` } };
}

test("requests that may not pass get the promised status, have no effect, and learn no secret and no path", async () => {
  const { model, daemon, json } = await start();
  const port = new URL(daemon.url).port;
  const body = JSON.stringify({ text: "do something" });
  const post = (headers: Record<string, string>, text: string | Buffer = body, path = "/api/messages") =>
    raw(daemon, path, headers, { method: "POST", body: text });

  const cases: [string, Promise<{ status: number; body: string }>, number][] = [
    ["no token", post({ "content-type": "application/json" }), 401],
    ["a wrong token", post({ ...json, authorization: "Bearer wrong" }), 401],
    ["an empty token", post({ ...json, authorization: "Bearer " }), 401],
    ["a token in the address", raw(daemon, `/api/status?token=${daemon.token}`, {}), 401],
    ["a made-up cookie", raw(daemon, "/api/status", { cookie: `io_session_${port}=${daemon.token}` }), 401],
    ["a foreign origin", post({ ...json, origin: "https://evil.example" }), 403],
    ["an origin that is null", post({ ...json, origin: "null" }), 403],
    ["an origin on another port", post({ ...json, origin: `http://127.0.0.1:${Number(port) + 1}` }), 403],
    ["a foreign host", post({ ...json, host: "evil.example" }), 403],
    ["a host that only begins like ours", post({ ...json, host: "127.0.0.1.evil.example" }), 403],
    ["health under a foreign host", raw(daemon, "/api/health", { host: "evil.example" }), 403],
    ["a body of 20 MB", post(json, Buffer.alloc(20_000_000, "a")), 413],
    ["broken JSON", post(json, "{text: oops"), 400],
    ["no text", post(json, JSON.stringify({ text: "   " })), 400],
    ["an unknown field", post(json, JSON.stringify({ text: "x", admin: true })), 400],
    ["a source that is not the caller's to choose", post(json, JSON.stringify({ text: "x", source: "background" })), 400],
    ["an odd conversation", post(json, JSON.stringify({ text: "x", conversation: "../../etc/passwd" })), 400],
    ["a conversation with a line break", post(json, JSON.stringify({ text: "x", conversation: "a\nb" })), 400],
    ["an odd conversation in a list", raw(daemon, "/api/messages?conversation=..%2F..", json), 400],
    ["odd events", raw(daemon, "/api/events?conversation=%00", json), 400],
    ["an unknown message", raw(daemon, "/api/messages/m_nope", json), 404],
    ["an id of any form", raw(daemon, "/api/messages/%2e%2e%2fio.db", json), 404],
    ["an unknown route", raw(daemon, "/api/nothing", json), 404],
  ];
  for (const [what, answer, status] of cases) {
    const { status: got, body: text } = await answer;
    expect({ what, status: got }).toEqual({ what, status });
    expect(JSON.parse(text)).toMatchObject({ error: { code: expect.any(String), message: expect.any(String) } });
    expect(text).not.toContain(daemon.token);
    expect(text).not.toContain(daemon.home);
    expect(text).not.toMatch(/\bat .*\.[jt]s:\d+/);
  }
  expect((await daemon.json<{ items: Message[] }>("GET", "/api/messages")).items).toEqual([]);
  expect(model.requests).toHaveLength(0);
});

test("the token is traded for a cookie that scripts cannot read and a key, and only both open the door", async () => {
  const { daemon } = await start();
  const login = (token: string) =>
    fetch(`${daemon.url}/api/login`, {
      method: "POST",
      body: JSON.stringify({ token }),
      headers: { "content-type": "application/json" },
    });
  expect((await login("wrong")).status).toBe(401);
  const response = await login(daemon.token);
  const cookie = response.headers.get("set-cookie") ?? "";
  expect(cookie).toMatch(new RegExp(`^io_session_${new URL(daemon.url).port}=`));
  expect(cookie).toMatch(/HttpOnly/i);
  expect(cookie).toMatch(/SameSite=Strict/i);
  expect(cookie).not.toContain(daemon.token);
  const { key } = (await response.json()) as { key: string };
  const other = (await (await login(daemon.token)).json()) as { key: string };
  const ours = { cookie: cookie.split(";")[0]!, origin: daemon.url };
  const opened = (headers: Record<string, string>) => raw(daemon, "/api/status", headers).then(({ status }) => status);
  expect(await opened({ ...ours, "io-key": key })).toBe(200);
  // Browsers send the cookie to every port of this host, so a program on another port has it and can forge everything else.
  expect(await opened(ours)).toBe(401);
  expect(await opened({ ...ours, "sec-fetch-site": "same-origin" })).toBe(401);
  expect(await opened({ ...ours, "io-key": "" })).toBe(401);
  expect(await opened({ ...ours, "io-key": other.key })).toBe(401);
  expect(await opened({ "io-key": key, origin: daemon.url })).toBe(401);
  expect((await raw(daemon, "/api/messages", ours)).body).not.toContain("items");
});

test("the key to a cookie that a program fetched is given to our own page until it was used, and to nobody after that", async () => {
  const { daemon } = await start();
  const enter = async (headers: Record<string, string> = {}) => {
    const answer = await fetch(`${daemon.url}/api/login`, {
      method: "POST",
      body: JSON.stringify({ token: daemon.token }),
      headers: { "content-type": "application/json", ...headers },
    });
    return (answer.headers.get("set-cookie") ?? "").split(";")[0]!;
  };
  const claim = async (cookie: string, headers: Record<string, string> = { "sec-fetch-site": "same-origin" }) =>
    JSON.parse((await raw(daemon, "/api/login", { cookie, ...headers })).body) as { signedIn: boolean; key?: string };
  const cookie = await enter();
  expect(await claim(cookie, { "sec-fetch-site": "same-site" })).toEqual({ signedIn: false });
  expect(await claim(cookie, {})).toEqual({ signedIn: false });
  await claim(cookie);
  // That answer was lost: the page was reloaded before it arrived.
  const { key } = await claim(cookie);
  expect((await raw(daemon, "/api/status", { cookie, "io-key": key! })).status).toBe(200);
  expect(await claim(cookie)).toEqual({ signedIn: false });
  // A page that signs in by itself already has its key.
  expect(await claim(await enter({ "sec-fetch-site": "same-origin" }))).toEqual({ signedIn: false });
  expect(await claim("io_session_1=x.y")).toEqual({ signedIn: false });
});

test("health needs no token, and openapi.json describes what the routes check", async () => {
  const { daemon, json } = await start();
  expect(await (await fetch(`${daemon.url}/api/health`)).json()).toEqual({ status: "ok" });
  const api = JSON.parse((await raw(daemon, "/api/openapi.json", json)).body) as {
    openapi: string;
    paths: Record<string, unknown>;
  };
  expect(api.openapi).toMatch(/^3\.1/);
  expect(Object.keys(api.paths)).toEqual(
    expect.arrayContaining([
      "/api/health",
      "/api/status",
      "/api/messages",
      "/api/messages/{id}",
      "/api/events",
      "/api/stop",
      "/api/login",
    ]),
  );
});
