import { spawnSync } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import openapiTypes, { astToString } from "openapi-typescript";
import { expect, test } from "vitest";
import { packageRoot } from "../../../src/lib/package-root.ts";
import { startDaemonProcess } from "../../support/daemon.ts";
import { createAnswerCheck } from "../../support/described.ts";
import { temporaryFolder, temporaryHome } from "../../support/home.ts";

const DESCRIPTION = readFileSync(join(packageRoot, "dist", "openapi.json"), "utf8");

interface Described {
  paths: Record<string, Record<string, { operationId: string; tags: string[]; security?: object[] }>>;
}

test("openapi.json meets Redocly's recommended rules without an error or a warning", async () => {
  const config = await createConfig({ extends: ["recommended"] });
  const problems = await lintFromString({ source: DESCRIPTION, config });
  expect(problems.map(({ ruleId, location }) => `${ruleId} ${location[0]?.pointer}`)).toEqual([]);
});

test("every operation has a name of its own and a tag, and only those that hand out a session need no token", () => {
  const { paths } = JSON.parse(DESCRIPTION) as Described;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.values(methods).map((operation) => ({ path, ...operation })),
  );
  expect(operations.length).toBeGreaterThan(90);
  expect(operations.filter(({ operationId, tags }) => !/^[a-z][A-Za-z]+$/.test(operationId) || tags.length !== 1)).toEqual([]);
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
  const open = operations.filter(({ security }) => security?.length === 0).map(({ path }) => path);
  expect([...new Set(open)].sort()).toEqual(["/api/health", "/api/login"]);
});

/** A program as a stranger would write it who has only openapi.json. */
const CLIENT = `
import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";
const [baseUrl, token] = process.argv.slice(2);
const { GET, POST, PATCH } = createClient<paths>({ baseUrl, headers: { authorization: "Bearer " + token } });
const sent = await POST("/api/messages", { params: { query: { wait: "true" } }, body: { text: "hello", source: "api" } });
const read = await GET("/api/messages/{id}", { params: { path: { id: sent.data!.id } } });
const changed = await PATCH("/api/config", { body: { defaultModel: null, provider: null } });
const refused = await GET("/api/runs/{id}", { params: { path: { id: "none" } } });
// @ts-expect-error: a field that is not described
sent.data!.nothingOfTheKind;
// @ts-expect-error: a path that is not described
await GET("/api/nothing").catch(() => undefined);
const reply: string | null = read.data!.reply;
const set: boolean | undefined = changed.data?.mode !== undefined;
console.log(JSON.stringify({ same: read.data!.id === sent.data!.id, reply, set, code: refused.error?.error.code }));
`;

test("a client that is generated from it has the right types, and serves", async () => {
  const folder = temporaryFolder();
  symlinkSync(join(packageRoot, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "package.json"), '{"type": "module"}');
  writeFileSync(join(folder, "api.d.ts"), astToString(await openapiTypes(DESCRIPTION)));
  writeFileSync(join(folder, "client.ts"), CLIENT);
  const options = { strict: true, noEmit: true, module: "nodenext", target: "es2022", allowImportingTsExtensions: true };
  const compilerOptions = { ...options, types: ["node"], skipLibCheck: true };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["client.ts"] }));
  const node = (...args: string[]) => spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
  expect(node(join(packageRoot, "node_modules", "typescript7", "bin", "tsc")).stdout).toBe("");

  const daemon = await startDaemonProcess(temporaryHome(), { IO_ENGINE: "rehearsal" });
  const { stdout, stderr } = node("--import", "tsx", "client.ts", daemon.url, daemon.token);
  expect(stderr).toBe("");
  expect(JSON.parse(stdout)).toMatchObject({ same: true, reply: expect.stringMatching(/./), set: true, code: "not_found" });
}, 120_000);

test("an answer that lacks a field, has one too many, or a status that is not described is noticed", () => {
  const check = createAnswerCheck();
  check("GET", "/api/health", 200, { status: "ok" });
  check("GET", "/api/runs/x", 404, { error: { code: "not_found", message: "none" } });
  expect(() => check("GET", "/api/health", 200, {})).toThrow(/required property 'status'/);
  expect(() => check("GET", "/api/health", 200, { status: "ok", more: 1 })).toThrow(/additional/);
  expect(() => check("GET", "/api/health", 302, { status: "ok" })).toThrow(/knows no 302/);
  expect(() => check("GET", "/api/nowhere", 404, {})).toThrow(/required property 'error'/);
});
