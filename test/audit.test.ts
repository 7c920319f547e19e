import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { packageRoot } from "../src/lib/package-root.ts";
import { exec } from "../src/process/exec.ts";
import { temporaryFolder } from "./support/home.ts";

type Asked = Record<string, string[]>;

/**
 * A registry that answers the request of `npm audit`: POST /-/npm/v1/security/advisories/bulk, names with versions, gzipped.
 */
async function registry(advisories: object, status = 200) {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    if (request.method !== "POST" || request.url !== "/-/npm/v1/security/advisories/bulk")
      return response.writeHead(404).end("{}");
    asked.push(JSON.parse((request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body).toString()) as Asked);
    return response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(advisories));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  onTestFinished(() => void server.close());
  return { asked, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
}

const audit = (url: string) =>
  exec(process.execPath, [join(packageRoot, "scripts", "audit-bundled.js")], {
    env: {
      ...{ PATH: process.env.PATH, HOME: temporaryFolder() },
      ...{ npm_config_registry: url, npm_config_update_notifier: "false", npm_config_fetch_retries: "0" },
    },
  });

test("every package of the bundle is asked for, and a known vulnerability of one is named and fails", async () => {
  const advisory = { id: 1, url: "https://advisories.invalid/1", title: "Reads too much", severity: "high" };
  const { asked, url } = await registry({ zod: [{ ...advisory, vulnerable_versions: "*" }] });
  const { code, output } = await audit(url);
  expect(code).toBe(1);
  expect(output).toContain("Reads too much");
  const [question = {}] = asked;
  expect(Object.keys(question).length).toBeGreaterThan(30);
  expect(question.zod).toEqual([expect.stringMatching(/^\d+\.\d+\.\d+$/)]);
  expect(question["@hono/zod-openapi"]).toHaveLength(1);
});

test("where nothing is known it passes, and where nobody answers it does not", async () => {
  const fine = await registry({});
  expect(await audit(fine.url)).toMatchObject({ code: 0, output: expect.stringContaining("found 0 vulnerabilities") });
  const broken = await registry({}, 500);
  expect((await audit(broken.url)).code).not.toBe(0);
});
