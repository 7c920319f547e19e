import { createHmac, timingSafeEqual } from "node:crypto";
import type { OpenAPIHono } from "@hono/zod-openapi";
import { bodyLimit } from "hono/body-limit";
import { z } from "zod";
import type { Watches } from "../../forge/watches.ts";
import { readJsonInput } from "../../lib/input-json.ts";
import { fail } from "./errors.ts";

export interface ForgeHookDeps {
  watches: Watches;
  /** The secret with which GitHub, Gitea or Forgejo signs; without one this address does not exist. */
  webhookSecret: () => string | undefined;
}

const MAX_BODY = 1_000_000;
const Delivery = z.object({ repository: z.object({ full_name: z.string().max(300), html_url: z.url().max(1_000) }) });

/**
 * Receives a forge's webhooks. IO uses only the repository's name and then checks the repository as usual, so nothing is done
 * twice and nothing else is trusted.
 */
export function forgeHook(app: OpenAPIHono, { watches, webhookSecret }: ForgeHookDeps): void {
  const tooLarge = bodyLimit({ maxSize: MAX_BODY, onError: (context) => fail(context, 413, "The body is larger than 1 MB.") });
  app.post("/hooks/forge", async (context, next) => {
    if (webhookSecret() === undefined) return fail(context, 404, "There is nothing at this address.");
    // Reads no body of a sender that does not even present a signature.
    if (!signatureIn(context.req.header("x-hub-signature-256")))
      return fail(context, 401, "The signature is missing: X-Hub-Signature-256, by the secret of forge.webhookSecret.");
    return tooLarge(context, next);
  });
  app.post("/hooks/forge", async (context) => {
    const secret = webhookSecret();
    const given = signatureIn(context.req.header("x-hub-signature-256"));
    const text = await context.req.text();
    const expected = secret === undefined ? undefined : createHmac("sha256", secret).update(text).digest();
    if (!given || !expected || !timingSafeEqual(given, expected))
      return fail(context, 401, "The signature does not fit: the secret there is not the one of forge.webhookSecret.");
    const read = await readJsonInput(text);
    const { repository } = ("value" in read ? Delivery.safeParse(read.value).data : undefined) ?? {};
    if (!repository) return fail(context, 400, "This is no delivery about a repository, as JSON.");
    const isWatched = watches.nudge(new URL(repository.html_url).host, repository.full_name);
    return context.json({ isWatched }, 202);
  });
}

function signatureIn(header: string | undefined): Buffer | undefined {
  const [, hex] = /^sha256=([0-9a-f]{64})$/.exec(header ?? "") ?? [];
  return hex === undefined ? undefined : Buffer.from(hex, "hex");
}
