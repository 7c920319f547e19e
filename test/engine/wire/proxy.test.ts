import { readFileSync } from "node:fs";
import { request as ask, createServer, type Server } from "node:http";
import { createServer as createSecure } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { createProxyChoice } from "../../../src/engine/wire/proxy.ts";
import { createHttpTransport } from "../../../src/engine/wire/transport.ts";
import { exec } from "../../../src/process/exec.ts";
import { turn } from "../../support/engine.ts";
import { temporaryFolder } from "../../support/home.ts";
import { startOpenAi } from "../../support/providers/openai.ts";
import { until } from "../../support/until.ts";
import { engineOn, sessionSpec } from "../../support/wires.ts";

const KEY = "sk-proj-right-key-for-the-tests-0000";

async function listen(server: Server): Promise<number> {
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  onTestFinished(
    () =>
      new Promise<void>((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  );
  return (server.address() as AddressInfo).port;
}

interface ProxyBehaviour {
  /** If set, answers every request with this status instead of forwarding it. */
  refuse?: number;
  /** If set, forwards every request to this loopback port, whatever its host name. */
  to?: number;
}

/** A proxy as in offices: it tunnels HTTPS connections, and forwards plain requests by their full URL. */
async function startProxy({ refuse, to }: ProxyBehaviour = {}) {
  const carried: string[] = [];
  const credentials: (string | undefined)[] = [];
  const server = createServer((incoming, response) => {
    carried.push(`${incoming.method} ${incoming.url}`);
    credentials.push(incoming.headers["proxy-authorization"]);
    if (refuse) return response.writeHead(refuse, "No", { "content-type": "text/html" }).end("<title>No entry</title>");
    const { port, pathname, search } = new URL(incoming.url ?? "");
    const { "proxy-authorization": _, ...headers } = incoming.headers;
    const { method } = incoming;
    const onward = ask({ host: "127.0.0.1", port: to ?? port, path: pathname + search, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.once("error", () => response.destroy());
    response.once("close", () => onward.destroy());
    return incoming.pipe(onward);
  });
  server.on("connect", (incoming, socket) => {
    carried.push(`CONNECT ${incoming.url}`);
    credentials.push(incoming.headers["proxy-authorization"]);
    if (refuse) return socket.end(`HTTP/1.1 ${refuse} No\r\n\r\n`);
    const onward = connect(to ?? Number(incoming.url?.split(":").at(-1)), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      onward.pipe(socket).pipe(onward);
    });
    onward.on("error", () => socket.destroy());
    socket.on("error", () => onward.destroy());
    return socket;
  });
  const port = await listen(server);
  return { url: `http://127.0.0.1:${port}`, host: `127.0.0.1:${port}`, carried, credentials };
}

/** An HTTPS server on loopback, and its self-signed certificate. */
async function startSecure() {
  const folder = temporaryFolder();
  const [key, cert] = [`${folder}/key.pem`, `${folder}/cert.pem`];
  const made = await exec("openssl", [
    ...["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=models.example"],
    ...["-addext", "subjectAltName=DNS:models.example", "-keyout", key, "-out", cert],
  ]);
  if (made.code !== 0) throw new Error(made.output);
  const server = createSecure({ key: readFileSync(key), cert: readFileSync(cert) }, (_, response) => response.end("secure"));
  return { port: await listen(server as unknown as Server), cert };
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
const never = new AbortController().signal;

describe("which proxy is chosen", () => {
  const publicly = async () => ["93.184.216.34"];
  const choose = (env: NodeJS.ProcessEnv, url: string, resolve = publicly) => createProxyChoice({ env, resolve })(new URL(url));

  test.each([
    ["https_proxy", "https://api.example.com/v1"],
    ["HTTPS_PROXY", "https://api.example.com/v1"],
    ["http_proxy", "http://api.example.com/v1"],
    ["HTTP_PROXY", "http://api.example.com/v1"],
    ["all_proxy", "https://api.example.com/v1"],
    ["ALL_PROXY", "http://api.example.com/v1"],
  ])("%s counts for %s", async (name, url) => {
    expect(await choose({ [name]: "http://proxy:3128" }, url)).toBe("http://proxy:3128");
  });

  test("lower case counts before upper case, the special before the general, and the wrong one not at all", async () => {
    const url = "https://api.example.com";
    expect(await choose({ https_proxy: "http://a:1", HTTPS_PROXY: "http://b:1", ALL_PROXY: "http://c:1" }, url)).toBe(
      "http://a:1",
    );
    expect(await choose({ https_proxy: "", HTTPS_PROXY: "http://b:1", ALL_PROXY: "http://c:1" }, url)).toBe("http://b:1");
    expect(await choose({ HTTP_PROXY: "http://a:1" }, url)).toBeUndefined();
    expect(await choose({}, url)).toBeUndefined();
  });

  test.each([
    "http://localhost:11434",
    "http://127.0.0.1:1234/v1",
    "http://127.8.9.10:1234",
    "http://[::1]:8080",
    "http://[::ffff:127.0.0.1]:8080",
    "http://0.0.0.0:8080",
    "http://10.1.2.3",
    "http://172.20.0.1",
    "http://192.168.1.5:8000",
    "http://169.254.10.1",
    "http://[fd00::5]",
    "http://[fe80::1]",
    "http://100.64.0.9",
    "http://gpu-box:8000",
    "http://gpu.local",
    "http://api.localhost",
    "http://host.docker.internal:11434",
  ])("%s is asked directly", async (url) => {
    expect(await choose({ ALL_PROXY: "http://proxy:3128", HTTP_PROXY: "http://proxy:3128" }, url)).toBeUndefined();
  });

  test("a name that leads into the own network is asked directly, one that leads out or nowhere is not", async () => {
    const env = { ALL_PROXY: "http://proxy:3128" };
    const url = "https://models.corp.example";
    expect(await choose(env, url, async () => ["10.0.0.7", "fd00::7"])).toBeUndefined();
    expect(await choose(env, url, async () => ["10.0.0.7", "93.184.216.34"])).toBe("http://proxy:3128");
    const nowhere = async () => {
      throw new Error("ENOTFOUND");
    };
    expect(await choose(env, url, nowhere)).toBe("http://proxy:3128");
  });

  test.each([
    ["*", true],
    ["api.example.com", true],
    ["API.Example.com", true],
    ["example.com", true],
    [".example.com", true],
    ["*.example.com", true],
    ["api.example.com:443", true],
    ["api.example.com:8443", false],
    ["other.com, api.example.com", true],
    ["other.com api.example.com", true],
    ["ample.com", false],
    ["api.example.com.evil.com", false],
    ["", false],
    [",", false],
  ])('NO_PROXY="%s" keeps api.example.com from the proxy: %s', async (noProxy, isExempt) => {
    const chosen = await choose({ ALL_PROXY: "http://proxy:3128", NO_PROXY: noProxy }, "https://api.example.com/v1");
    expect(chosen).toBe(isExempt ? undefined : "http://proxy:3128");
  });

  test.each([
    ["93.184.216.34", "http://93.184.216.34", true],
    ["93.184.0.0/16", "http://93.184.216.34", true],
    ["93.185.0.0/16", "http://93.184.216.34", false],
    ["[2606:4700::1]", "http://[2606:4700::1]", true],
    ["2606:4700::1", "http://[2606:4700::1]", true],
    ["[2606:4700::1]:80", "http://[2606:4700::1]", true],
    ["[2606:4700::1]:81", "http://[2606:4700::1]", false],
    ["2606:4700::/32", "http://[2606:4700::1]", true],
  ])("no_proxy=%s and %s: %s", async (noProxy, url, isExempt) => {
    const chosen = await choose({ ALL_PROXY: "http://proxy:3128", no_proxy: noProxy }, url);
    expect(chosen).toBe(isExempt ? undefined : "http://proxy:3128");
  });

  test("a proxy that a person set for the provider is used for every address", async () => {
    const chosen = createProxyChoice({ env: { NO_PROXY: "*" }, always: "http://mine:1" });
    expect(await chosen(new URL("http://127.0.0.1:1"))).toBe("http://mine:1");
  });
});

describe("through a proxy", () => {
  const through = (proxy: string) => createHttpTransport(createProxyChoice({ env: {}, always: proxy }));

  test("a plain address is carried by its whole address, as proxies that tunnel only to secure ports want it", async () => {
    const server = createServer((incoming, response) => response.end(`${incoming.method} ${incoming.url}`));
    const port = await listen(server);
    const proxy = await startProxy({ to: port });
    const answer = await through(proxy.url)({
      method: "GET",
      url: "http://models.example/v1/models?x=1",
      headers: {},
      signal: never,
    });
    expect(answer.status).toBe(200);
    expect(await textOf(answer.body)).toBe("GET /v1/models?x=1");
    expect(proxy.carried).toEqual(["GET http://models.example/v1/models?x=1"]);
  });

  test("a proxy may be named without its protocol, and with a name and password", async () => {
    const server = createServer((_, response) => response.end("ok"));
    const proxy = await startProxy({ to: await listen(server) });
    const send = (uri: string) => through(uri)({ method: "GET", url: "http://models.example/", headers: {}, signal: never });
    expect((await send(proxy.host)).status).toBe(200);
    expect((await send(`http://me:p%40ss@${proxy.host}`)).status).toBe(200);
    expect(proxy.credentials).toEqual([undefined, `Basic ${Buffer.from("me:p@ss").toString("base64")}`]);
  });

  test("a secure address is reached through a tunnel, and its certificate is the provider's own", async () => {
    const secure = await startSecure();
    const proxy = await startProxy({ to: secure.port });
    const send = () => through(proxy.url)({ method: "GET", url: "https://models.example/", headers: {}, signal: never });
    await expect(send()).rejects.toMatchObject({
      fault: "network",
      message: expect.stringMatching(/certificate of models\.example/),
    });
    expect(proxy.carried[0]).toBe("CONNECT models.example:443");
    // A client that trusts the certificate gets the answer.
    const { code, output } = await exec(
      process.execPath,
      ["--import", "tsx", "--input-type=module", "-e", TRUSTING.replace("PROXY", proxy.url)],
      { env: { ...process.env, NODE_EXTRA_CA_CERTS: secure.cert } },
    );
    expect({ code, output: output.trim() }).toEqual({ code: 0, output: "secure" });
  });

  test.each([
    ["http://models.example/", 407, /proxy/i],
    ["https://models.example/", 407, /proxy.*407/i],
    ["https://models.example/", 403, /proxy.*403/i],
  ])("a proxy that refuses %s with %s is named, and its password is not", async (url, refuse, words) => {
    const proxy = await startProxy({ refuse });
    const sending = through(`http://me:secret@${proxy.host}`)({ method: "GET", url, headers: {}, signal: never });
    const failure = await sending.then(
      async (answer) => new Error(`HTTP ${answer.status}: ${await textOf(answer.body)}`),
      (error: Error) => error,
    );
    expect(failure).toMatchObject({ fault: "network", message: expect.stringMatching(words) });
    expect(failure.message).toContain(proxy.host);
    expect(failure.message).not.toContain("secret");
  });

  test("a proxy that is not there is named", async () => {
    const gone = createServer();
    const port = await listen(gone);
    await new Promise((closed) => gone.close(closed));
    for (const url of ["http://models.example/", "https://models.example/"])
      await expect(through(`http://127.0.0.1:${port}`)({ method: "GET", url, headers: {}, signal: never })).rejects.toMatchObject(
        {
          fault: "network",
          message: expect.stringContaining(`through the proxy http://127.0.0.1:${port}`),
        },
      );
  });

  test("a stopped request lets go of the proxy at once", async () => {
    let [isAsked, isLeft] = [false, false];
    const server = createServer((_, response) => {
      isAsked = true;
      response.once("close", () => {
        isLeft = true;
      });
    });
    const proxy = await startProxy({ to: await listen(server) });
    const stop = new AbortController();
    const sending = through(proxy.url)({ method: "GET", url: "http://models.example/", headers: {}, signal: stop.signal });
    const failed = expect(sending).rejects.toThrow();
    await until("the request", () => isAsked);
    stop.abort();
    await failed;
    await until("the end of the connection", () => isLeft, 1_000);
  });
});

const TRUSTING = `
  const { createHttpTransport } = await import("./src/engine/wire/transport.ts");
  const send = createHttpTransport(async () => "PROXY");
  const { body } = await send({ method: "GET", url: "https://models.example/", headers: {}, signal: new AbortController().signal });
  for await (const chunk of body) process.stdout.write(chunk);
  process.exit(0);
`;

describe("a whole engine", () => {
  test("a provider on loopback is asked directly, whatever the variables say", async () => {
    const provider = await startOpenAi({ key: KEY, script: () => ({ say: "straight" }) });
    const proxy = await startProxy({ refuse: 403 });
    const folder = temporaryFolder();
    const names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);
    const env = {
      PATH: process.env.PATH,
      HOME: folder,
      COPILOT_CLI_PATH: process.env.COPILOT_CLI_PATH,
      ...Object.fromEntries(names.map((name) => [name, proxy.url])),
    };
    const engine = await engineOn(folder, { baseUrl: provider.url, apiKey: KEY, model: "gpt-4o" }, { env });
    onTestFinished(() => engine.stop());
    expect(await engine.session(sessionSpec("a", folder)).run(turn("go"))).toMatchObject({ outcome: "done", text: "straight" });
    expect(proxy.carried).toEqual([]);
  });

  test("a provider whose proxy a person set is asked through it, on loopback too, and its answer streams", async () => {
    const provider = await startOpenAi({ key: KEY, script: () => ({ say: ["through ", "the ", "proxy 🎉"] }) });
    const proxy = await startProxy();
    const folder = temporaryFolder();
    const settings = { baseUrl: provider.url, apiKey: KEY, model: "gpt-4o", proxy: proxy.url };
    const engine = await engineOn(folder, settings);
    onTestFinished(() => engine.stop());
    const result = await engine.session(sessionSpec("a", folder)).run(turn("go"));
    expect(result).toMatchObject({ outcome: "done", text: "through the proxy 🎉" });
    expect(proxy.carried).toContain(`POST ${provider.url}/chat/completions`);
  });

  test("a proxy that refuses is told to the person, with its place", { timeout: 60_000 }, async () => {
    const provider = await startOpenAi({ key: KEY, script: () => ({ say: "never" }) });
    const proxy = await startProxy({ refuse: 407 });
    const folder = temporaryFolder();
    const settings = { baseUrl: provider.url, apiKey: KEY, model: "gpt-4o", proxy: `http://me:secret@${proxy.host}` };
    const engine = await engineOn(folder, settings);
    onTestFinished(() => engine.stop());
    const result = await engine.session(sessionSpec("a", folder)).run(turn("go"));
    expect(result).toMatchObject({ outcome: "failed", error: { code: "unreachable" } });
    expect(result.error!.message).toContain(`the proxy http://${proxy.host}`);
    expect(result.error!.message).not.toContain("secret");
  });
});
