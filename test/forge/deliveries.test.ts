import { createHmac } from "node:crypto";
import { OpenAPIHono } from "@hono/zod-openapi";
import { expect, test } from "vitest";
import { forgeHook } from "../../src/channels/http/forge-hook.ts";
import type { Watches } from "../../src/forge/watches.ts";

const SECRET = "a-secret-of-the-webhook";
const BODY = JSON.stringify({ repository: { full_name: "acme/a", html_url: "https://forge.test/acme/a" } });
const signature = (body: string, secret = SECRET) => `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;

/** The address for deliveries, and which repositories it had looked at. */
function startHook() {
  const nudged: string[] = [];
  const app = new OpenAPIHono();
  const watches = { nudge: (host: string, repo: string) => nudged.push(`${host}/${repo}`) > 0 } as unknown as Watches;
  forgeHook(app, { watches, webhookSecret: () => SECRET });
  const deliver = async (body: string, signed: string | undefined) =>
    (
      await app.request("/hooks/forge", {
        method: "POST",
        body,
        headers: signed === undefined ? {} : { "x-hub-signature-256": signed },
      })
    ).status;
  return { nudged, deliver };
}

test("only a delivery that is signed with the secret, over exactly its body, has a repository looked at", async () => {
  const { nudged, deliver } = startHook();
  const real = signature(BODY);
  for (const wrong of [
    undefined,
    "",
    SECRET,
    real.slice(0, -2),
    real.toUpperCase(),
    real.replace("sha256=", "sha1="),
    signature(`${BODY} `),
    signature(BODY, ""),
    signature(BODY, "another-secret"),
  ])
    expect([wrong, await deliver(BODY, wrong)]).toEqual([wrong, 401]);
  expect(nudged).toEqual([]);
  expect(await deliver(BODY, real)).toBe(202);
  expect(nudged).toEqual(["forge.test/acme/a"]);
});

test("a signed delivery that names no repository, or is too large, has nothing looked at", async () => {
  const { nudged, deliver } = startHook();
  for (const body of ["", "[1]", "null", '{"repository":{"full_name":1}}', BODY.replace("https://forge.test", "nowhere")])
    expect([body, await deliver(body, signature(body))]).toEqual([body, 400]);
  const large = BODY.replace("{", `{"x":"${"x".repeat(1_000_000)}",`);
  expect(await deliver(large, signature(large))).toBe(413);
  expect(nudged).toEqual([]);
});

test("without a secret there is nothing at the address, however a delivery is signed", async () => {
  const app = new OpenAPIHono();
  const nudged: string[] = [];
  const watches = { nudge: (host: string) => nudged.push(host) > 0 } as unknown as Watches;
  forgeHook(app, { watches, webhookSecret: () => undefined });
  for (const secret of ["", "undefined"]) {
    const headers = { "x-hub-signature-256": signature(BODY, secret) };
    expect((await app.request("/hooks/forge", { method: "POST", body: BODY, headers })).status).toBe(404);
  }
  expect(nudged).toEqual([]);
});
