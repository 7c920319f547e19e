import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Message } from "../../../src/protocol/messages.ts";
import { startDaemonProcess, type TestDaemon } from "../../support/daemon.ts";
import { collectEndings, temporaryHome } from "../../support/home.ts";

let daemon: TestDaemon;
const { atTheEnd, end } = collectEndings();
afterAll(end);
beforeAll(async () => {
  daemon = await startDaemonProcess(temporaryHome({}, atTheEnd), { IO_ENGINE: "rehearsal" }, atTheEnd);
});

const JSON_TYPE = { "content-type": "application/json" };
interface Answer {
  status: number;
  text: string;
  headers: Record<string, string | string[] | undefined>;
}

/** Sends a request exactly as written; `fetch` would correct some of them. */
function send(
  method: string,
  path: string,
  {
    headers = {},
    body,
    agent,
    token = daemon.token,
  }: { headers?: object; body?: string | Buffer; agent?: Agent; token?: string } = {},
): Promise<Answer> {
  return new Promise((done, failed) => {
    const { hostname, port } = new URL(daemon.url);
    const authorization = token === "" ? {} : { authorization: `Bearer ${token}` };
    const all = { ...authorization, ...(body !== undefined && { "content-length": Buffer.byteLength(body) }), ...headers };
    const sent = request({ hostname, port, path, method, headers: all, ...(agent && { agent }), timeout: 20_000 }, (response) => {
      const isStream = String(response.headers["content-type"]).startsWith("text/event-stream");
      const answered = () => done({ status: response.statusCode ?? 0, text, headers: response.headers });
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", answered);
      if (isStream) {
        answered();
        sent.destroy();
      }
    });
    sent.on("timeout", () => sent.destroy(new Error(`no answer to ${method} ${path}`)));
    sent.on("error", failed);
    // The server may answer and close the connection while a large body is still being sent.
    if ((body?.length ?? 0) > 1_000_000) sent.on("socket", (socket) => socket.on("error", () => undefined));
    sent.end(body);
  });
}
const json = (method: string, path: string, value: unknown) =>
  send(method, path, { headers: JSON_TYPE, body: JSON.stringify(value) });
const configFile = () => readFileSync(join(daemon.home, "config.json"), "utf8");

test("limits are not erased by a request without a body, of whatever type it calls itself", async () => {
  expect((await json("PUT", "/api/budgets", { day: { tokens: 5_000 } })).status).toBe(200);
  for (const options of [{}, { headers: JSON_TYPE }, { headers: JSON_TYPE, body: "" }, { body: "" }])
    expect((await send("PUT", "/api/budgets", options)).status).toBe(400);
  expect((await send("PUT", "/api/budgets", { body: "{}" })).status).toBe(415);
  expect(JSON.parse((await send("GET", "/api/budgets")).text)).toMatchObject({ limits: { day: { tokens: 5_000 } } });
  expect((await json("PUT", "/api/budgets", {})).status).toBe(200);
  expect(JSON.parse((await send("GET", "/api/budgets")).text)).toMatchObject({ limits: {} });
});

test("an address with which the next start would not serve is refused now, with its sentence, and nothing is written", async () => {
  expect((await json("PATCH", "/api/config", { logLevel: "info" })).status).toBe(200);
  const before = configFile();
  for (const changes of [
    { host: "0.0.0.0" },
    { host: "192.0.2.1", allowRemote: true },
    { host: "no-such-name.invalid", allowRemote: true },
  ]) {
    const { status, text } = await json("PATCH", "/api/config", changes);
    expect({ changes, status }).toEqual({ changes, status: 400 });
    expect(text).toMatch(/allowRemote|no address/);
    expect(configFile()).toBe(before);
  }
  expect((await json("PATCH", "/api/config", { host: "0.0.0.0", allowRemote: true })).status).toBe(200);
  // Settings that were allowed together cannot be reset one by one.
  expect((await json("PATCH", "/api/config", { allowRemote: null })).status).toBe(400);
  expect((await json("PATCH", "/api/config", { host: null, allowRemote: null })).status).toBe(200);
});

test("an idempotencyKey answers the same words with the first message as it stands, and other words with 409", async () => {
  const post = (body: object, query = "") => json("POST", `/api/messages${query}`, { idempotencyKey: "k-1", ...body });
  const first = await post({ text: "repeat: once", conversation: "keys" }, "?wait=true");
  const { id } = JSON.parse(first.text) as Message;
  const again = await post({ text: " repeat: once ", conversation: "keys" });
  expect(JSON.parse(again.text)).toMatchObject({ id, status: "done", reply: expect.any(String) });
  expect((await post({ text: "repeat: twice", conversation: "keys" })).status).toBe(409);
  expect((await post({ text: "repeat: twice", conversation: "keys" }, "?wait=true")).status).toBe(409);
  expect((await post({ text: "repeat: once", conversation: "elsewhere" })).status).toBe(409);
  const { items } = JSON.parse((await send("GET", "/api/messages?conversation=keys")).text) as { items: Message[] };
  expect(items).toHaveLength(1);
});

test("a folder beside the daemon's own is not taken for a project, and its path is not told", async () => {
  // Vitest starts the daemon in a checkout, which has this folder.
  const routes = {
    "/api/runs": { issue: "x", projectPath: "src" },
    "/api/runs/validate": { yaml: "pipeline: []", projectPath: "src" },
    "/api/plans": { issue: "x", projectPath: "./src" },
    "/api/squads": { name: "x", projectPath: "src" },
    "/api/analyze": { projectPath: "src" },
    "/api/watches": { project: "src", label: "x" },
  };
  for (const [path, value] of Object.entries({ ...routes })) {
    const { status, text } = await json("POST", path, value);
    expect({ path, status }).toEqual({ path, status: expect.toSatisfy((code: number) => code === 400 || code === 404) });
    expect(text).not.toContain(process.cwd());
  }
  const { status, text } = await json("POST", "/api/runs", { issue: "x", projectPath: process.cwd(), with: ["src"] });
  expect({ status, text }).toMatchObject({ status: 400, text: expect.stringContaining("neither a squad") });
});

test("a content type that a route does not take is 415", async () => {
  const { text: openapi } = await send("GET", "/api/openapi.json");
  // Uploaded files may have any type.
  const taking = bodiesIn(openapi).filter(({ path }) => path !== "/api/files");
  expect(taking.length).toBeGreaterThan(15);
  const types = [
    "text/html",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
    "nonsense",
    "",
  ];
  for (const { method, path } of taking)
    for (const type of types) {
      const { status } = await send(method, path, { headers: type === "" ? {} : { "content-type": type }, body: "x=1" });
      expect({ method, path, type, status }).toEqual({ method, path, type, status: 415 });
    }
  expect(
    (await send("PUT", "/api/wiki/pages/general/a", { headers: { "content-type": "text/markdown" }, body: "# A" })).status,
  ).toBe(201);
});

test("a body that is packed or in another charset is 415, not read as something else", async () => {
  const body = JSON.stringify({ text: "hi", conversation: "packed" });
  for (const headers of [
    { ...JSON_TYPE, "content-encoding": "gzip" },
    { ...JSON_TYPE, "content-encoding": "br, gzip" },
    { "content-type": "application/json; charset=utf-16" },
    { "content-type": 'application/json; charset="ISO-8859-1"' },
  ])
    for (const path of ["/api/messages", "/api/login"]) {
      const { status, text } = await send("POST", path, { headers, body });
      expect({ path, headers, status }).toEqual({ path, headers, status: 415 });
      expect(text).toMatch(/content-encoding|UTF-8/);
    }
  for (const type of ["application/json; charset=UTF-8", "Application/JSON;charset=utf8"])
    expect(
      (await send("POST", "/api/messages", { headers: { "content-type": type, "content-encoding": "identity" }, body })).status,
    ).toBe(202);
});

test("a path that is too long, holds NUL or leads nowhere is refused by everything that takes one", async () => {
  const paths = [`/${"a".repeat(300)}`, `/${"a/".repeat(5_000)}`, "/tmp/a\0b", "/nonexistent/project", "/etc/passwd"];
  for (const projectPath of paths)
    for (const [method, path, body] of [
      ["POST", "/api/plans", { projectPath, issue: "Add a feature" }],
      ["POST", "/api/runs", { projectPath, issue: "Add a feature" }],
      ["POST", "/api/runs/validate", { projectPath, yaml: "pipeline: []" }],
      ["POST", "/api/squads", { projectPath, name: "x" }],
      ["POST", "/api/analyze", { projectPath }],
    ] as const) {
      const { status } = await json(method, path, body);
      expect({ path, projectPath: projectPath.slice(0, 30), status }).toEqual({
        path,
        projectPath: projectPath.slice(0, 30),
        status: 400,
      });
    }
  expect(JSON.parse((await send("GET", "/api/plans")).text)).toEqual({ items: [] });
});

test("a refused body ends its connection where the answer says so, and what stays open is really open", async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  atTheEnd(() => agent.destroy());
  const closing = await send("POST", "/api/messages", { headers: JSON_TYPE, body: Buffer.alloc(5_000_000, "a"), agent });
  expect(closing).toMatchObject({ status: 413, headers: { connection: "close" } });
  const cut = await send("POST", "/api/messages", { headers: JSON_TYPE, body: Buffer.alloc(5_000_000, "a"), agent, token: "" });
  expect(cut).toMatchObject({ status: 401, headers: { connection: "close" } });
  for (const body of ["{", '{"text":"\\u0000"}', "[".repeat(1_000), JSON.stringify({ text: "x", more: "y".repeat(900_000) })]) {
    const refused = await send("POST", "/api/messages", { headers: JSON_TYPE, body, agent });
    expect(refused).toMatchObject({ status: 400, headers: { connection: "keep-alive" } });
  }
  expect((await send("GET", "/api/status", { agent })).status).toBe(200);
});

test("before the token is known nothing longer than a token is waited for", async () => {
  // Only the beginning of the body is ever sent: a server that reads on would wait for the rest.
  for (const [path, status] of [
    ["/api/login", 413],
    ["/api/messages", 401],
    ["/api/config", 401],
  ] as const) {
    const answered = await new Promise<number>((done, failed) => {
      const { hostname, port } = new URL(daemon.url);
      const headers = { ...JSON_TYPE, "content-length": 1_000_000 };
      const sent = request({ hostname, port, path, method: "POST", headers, timeout: 10_000 }, (response) => {
        done(response.statusCode ?? 0);
        sent.destroy();
      });
      sent.on("timeout", () => sent.destroy(new Error(`${path} was not answered`)));
      sent.on("error", failed);
      sent.write('{"token":"');
    });
    expect({ path, answered }).toEqual({ path, answered: status });
  }
});

interface Operation {
  method: string;
  path: string;
}
type Document = { paths: Record<string, Record<string, { requestBody?: unknown }>> };

const operationsIn = (openapi: string): (Operation & { takesBody: boolean })[] =>
  Object.entries((JSON.parse(openapi) as Document).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { requestBody }]) => ({
      method: method.toUpperCase(),
      path: path.replace(/\{\w+\}/g, "nothing-like-it"),
      takesBody: requestBody !== undefined,
    })),
  );
const bodiesIn = (openapi: string) => operationsIn(openapi).filter(({ takesBody }) => takesBody);

/** Bodies that no route expects. */
const ODD_BODIES: Record<string, string | Buffer> = {
  nothing: "",
  "half an object": '{"text":',
  null: "null",
  "a list": "[]",
  "a number": "1e999",
  "a text": '"text"',
  "NUL in a text": '{"text":"a\\u0000b","projectPath":"/tmp/\\u0000","name":"\\u0000","token":"\\u0000"}',
  "half of a pair": '{"text":"\\ud83d","name":"\\udc00","projectPath":"/\\ud800"}',
  "one key twice": '{"text":1,"text":2,"__proto__":{"admin":true},"constructor":{"prototype":1}}',
  "numbers out of reach": '{"port":1e308,"limit":-1,"day":{"tokens":-1,"calls":1e21},"authorizedUserId":1e400}',
  "100,000 levels": `${"[".repeat(100_000)}${"]".repeat(100_000)}`,
  "100,000 levels of objects": '{"a":'.repeat(100_000),
  "50,000 keys": JSON.stringify(Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`k${at}`, at]))),
  "a long key": JSON.stringify({ ["k".repeat(500_000)]: 1 }),
  "long texts": JSON.stringify({ text: "x".repeat(400_000), projectPath: "/x".repeat(200_000), name: "n".repeat(90_000) }),
  "invalid UTF-8": Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
};
const ODD_QUERIES = [
  "?limit=-1&before=%00&q=%00",
  "?limit=1e9&after=-1&before=nothing&since=never&by=nobody&version=..%2F..%2F",
  "?limit=NaN&q=%ff%fe&conversation=..%2F..&path=%ed%a0%80&state=x&key=",
  `?q=${"x".repeat(8_000)}&key=${"k".repeat(2_000)}`,
  "?limit=1&limit=2&q[]=1&__proto__=1",
];

test("a body of more keys than any route has is refused before it is held against the route", async () => {
  const body = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`key-${at}`, at]));
  for (const [method, path] of [
    ["PATCH", "/api/config"],
    ["POST", "/api/messages"],
    ["PUT", "/api/budgets"],
  ] as const) {
    const many = await json(method, path, body(1_001));
    expect(many).toMatchObject({ status: 400, text: expect.stringContaining("more than 1,000 keys") });
    const fewer = await json(method, path, body(1_000));
    expect(fewer.status).toBe(400);
    expect(fewer.text).not.toContain("1,000 keys");
  }
});

test("no odd request to any route ends in a 500, a hang, a stack or a path of ours", { timeout: 120_000 }, async () => {
  const operations = operationsIn((await send("GET", "/api/openapi.json")).text);
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  atTheEnd(() => agent.destroy());
  const tried: (() => Promise<{ what: string; answer: Answer }>)[] = [];
  const plan = (
    what: string,
    method: string,
    path: string,
    options: { headers?: object; body?: string | Buffer; token?: string } = {},
  ) =>
    tried.push(async () => ({
      what: `${method} ${path.slice(0, 100)}: ${what}`,
      answer: await send(method, path, { agent, ...options }),
    }));
  for (const { method, path, takesBody } of operations) {
    // It checks the whole machine each time, and its one parameter has its own test.
    if (path === "/api/doctor") continue;
    if (takesBody) for (const [what, body] of Object.entries(ODD_BODIES)) plan(what, method, path, { headers: JSON_TYPE, body });
    if (takesBody) plan("no body at all", method, path);
    if (method === "GET") for (const query of ODD_QUERIES) plan(query.slice(0, 40), method, path + query);
    if (method === "GET") plan("only its head", "HEAD", path);
    if (path.includes("nothing-like-it"))
      for (const odd of ["%00", "%ff", "..%2F..%2Fetc", "%ed%a0%80", "x".repeat(4_000), "%E2%80%8B", "a%0Ab"])
        plan(`the name ${odd.slice(0, 20)}`, method === "GET" ? "GET" : "DELETE", path.replace("nothing-like-it", odd));
    for (const wrong of ["PUT", "PATCH", "OPTIONS", "PROPFIND"]) if (wrong !== method) plan("a wrong method", wrong, `${path}/`);
    plan("no token", method, path, { token: "", headers: JSON_TYPE, body: '{"a":1}' });
  }
  const broken: object[] = [];
  const next = async (): Promise<void> => {
    for (let one = tried.pop(); one; one = tried.pop()) {
      const { what, answer } = await one();
      const { status, text } = answer;
      const isOdd = status === 500 || status < 200 || /\bat .*\.[jt]s:\d+/.test(text) || text.includes(daemon.token);
      if (isOdd || (status >= 400 && !what.startsWith("HEAD") && !isError(text)))
        broken.push({ what, status, text: text.slice(0, 300) });
    }
  };
  const count = tried.length;
  await Promise.all(Array.from({ length: 8 }, next));
  expect(broken).toEqual([]);
  expect(count).toBeGreaterThan(800);
});

function isError(text: string): boolean {
  try {
    const { error } = JSON.parse(text) as { error?: { code?: unknown; message?: unknown } };
    return typeof error?.code === "string" && typeof error.message === "string" && error.message.length < 5_000;
  } catch {
    return false;
  }
}
