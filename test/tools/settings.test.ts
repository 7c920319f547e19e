import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Config } from "../../src/home/config.ts";
import { checkUpdate, compareVersions } from "../../src/tools/check-update.ts";
import { configUpdate, MODEL_KEYS } from "../../src/tools/config-update.ts";
import type { Tool } from "../../src/tools/tool.ts";

let root: string;
let server: Server | undefined;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "io-settings-")));
});
afterEach(() => {
  server?.close();
  server = undefined;
  rmSync(root, { recursive: true, force: true });
});

const call = async (one: Tool, args: Record<string, unknown>) =>
  one.run(one.schema.parse(args), { cwd: root, actor: "a", owner: "m", signal: new AbortController().signal });

test("a harmless setting is changed, told, and the rest of the file kept", async () => {
  const configPath = join(root, "config.json");
  writeFileSync(configPath, '{"port": 4000}');
  const heard: Config[] = [];
  const one = configUpdate({ configPath, onChange: (config) => heard.push(config) });
  expect(await call(one, { key: "defaultModel", value: "gpt-5.5" })).toBe('defaultModel is now "gpt-5.5".');
  expect(await call(one, { key: "turnCapMs", value: "120000" })).toBe("turnCapMs is now 120000.");
  expect(JSON.parse(readFileSync(configPath, "utf8"))).toEqual({ port: 4000, defaultModel: "gpt-5.5", turnCapMs: 120_000 });
  expect(heard.map((config) => config.turnCapMs)).toEqual([600_000, 120_000]);
  await expect(call(one, { key: "logLevel", value: "loud" })).rejects.toThrow(/logLevel: "loud" is not allowed/);
  await expect(call(one, { key: "logLevel", value: null })).rejects.toThrow("value: is missing");
});

test("no key that could widen the model's powers is set by a tool", async () => {
  const configPath = join(root, "config.json");
  const one = configUpdate({ configPath, onChange: () => {} });
  const kept = Object.keys(Config.shape).filter((key) => !MODEL_KEYS.some((name) => name === key));
  expect(kept).toEqual(
    expect.arrayContaining(["selfEditEnabled", "webFetchAllow", "allowRemote", "authorizedUserId", "provider", "updateRegistry"]),
  );
  for (const key of [...kept, "__proto__", "constructor"]) {
    await expect(call(one, { key, value: true })).rejects.toThrow(/only the user can|There is no setting/);
  }
  for (const value of [1, 9_999, 14_400_001, "3000000000", "soon"])
    await expect(call(one, { key: "turnCapMs", value })).rejects.toThrow("10 seconds to 4 hours");
  await expect(call(one, { key: "defaultModle", value: "x" })).rejects.toThrow('Did you mean "defaultModel"?');
  expect(existsSync(configPath)).toBe(false);
});

async function registry(handle: RequestListener): Promise<string> {
  server = createServer(handle);
  await new Promise<void>((done) => server!.listen(0, "127.0.0.1", done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/npm/`;
}

const updateOf = (version: string, base: string | undefined, env: NodeJS.ProcessEnv = {}) =>
  checkUpdate({ version, registry: () => base, env });

test("the registry that the config names is asked, and nothing is ever installed", async () => {
  const paths: string[] = [];
  const base = await registry((request, response) => {
    paths.push(request.url ?? "");
    response.end('{"version": "0.2.0"}');
  });
  expect(await call(updateOf("0.1.0", base), {})).toContain("IO 0.2.0 is published; this is 0.1.0");
  expect(await call(updateOf("0.2.0", base), {})).toContain("up to date");
  expect(paths).toEqual(["/npm/io-orchestrator/latest", "/npm/io-orchestrator/latest"]);
  expect(await call(updateOf("0.1.0", base), { apply: true })).toMatch(/Only a person installs it: .*"io update"/);
  expect(paths).toHaveLength(2);
  expect(updateOf("0.1.0", base).kind).toBe("read");
});

test("a registry that is missing, mute or lying is told plainly", async () => {
  const said = async (base: string) => call(updateOf("0.1.0", base), {}).catch((error: Error) => error.message);
  expect(await said("http://127.0.0.1:1")).toContain("could not be asked");
  expect(await said(await registry((_request, response) => response.writeHead(404).end()))).toContain("not published");
  server?.close();
  expect(await said(await registry((_request, response) => response.end('{"version": "1.0.0; rm -rf /"}')))).toContain(
    "names no version",
  );
});

test("without a named registry npm's own default is asked, through the proxy that the environment names", async () => {
  const asked: string[] = [];
  const { origin: proxy } = new URL(await registry(() => undefined));
  server!.on("connect", (request, socket) => {
    asked.push(request.url ?? "");
    socket.end("HTTP/1.1 503 Not here\r\n\r\n");
  });
  const one = updateOf("0.1.0", undefined, { https_proxy: proxy, npm_config_registry: "http://127.0.0.1:1" });
  await expect(call(one, {})).rejects.toThrow(/https:\/\/registry\.npmjs\.org\/ could not be asked/);
  expect(asked).toEqual(["registry.npmjs.org:443"]);
});

test("versions are ordered as numbers, and a release comes after its previews", () => {
  const sorted = ["1.0.0-alpha.2", "1.0.0-alpha.10", "1.0.0", "1.2.0", "1.10.0", "2.0.0"];
  expect([...sorted].reverse().sort(compareVersions)).toEqual(sorted);
  expect(compareVersions("1.0.0+build", "1.0.0")).toBe(0);
});

test("previews are ordered as semantic versioning says, and what is no version is not compared", async () => {
  const sorted = ["1.0.0-1", "1.0.0-Beta", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta"];
  expect([...sorted].reverse().sort(compareVersions)).toEqual(sorted);
  for (const version of ["1.0.0-01", "1.0.0 ", "v1.0.0", "1.0"]) {
    const base = await registry((_request, response) => response.end(JSON.stringify({ version })));
    await expect(call(updateOf("0.1.0", base), {})).rejects.toThrow("names no version");
    server?.close();
  }
});
