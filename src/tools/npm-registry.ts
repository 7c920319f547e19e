import isVersion from "semver/functions/valid.js";
import { z } from "zod";
import { messageOf } from "../lib/errors.ts";
import { withoutEnd } from "../lib/trim.ts";

/** The registry that npm uses by default. */
export const NPM_REGISTRY = "https://registry.npmjs.org/";

export interface RegistryQuestion {
  registry: string;
  package: string;
  signal?: AbortSignal;
  /** May name a proxy (`https_proxy`, `http_proxy`, `no_proxy`). */
  env: NodeJS.ProcessEnv;
}

const Version = z
  .string()
  .max(100)
  .regex(/^\d\S*$/)
  .refine((text) => isVersion(text) !== null);
const MAX_CHARACTERS = 2_000_000;
const DEADLINE_MS = 15_000;

/** The newest version of a package, from the registry itself: npm's settings are ignored. Never rejects. */
export async function newestVersion(
  question: RegistryQuestion,
): Promise<{ version: string } | { version?: undefined; why: string }> {
  const { registry, package: name, signal, env } = question;
  const at = withoutEnd(registry, "/");
  try {
    const { statusCode, text } = await get(`${at}/${name}/latest`, env, signal);
    if (statusCode === 404) return { why: `${name} is not published at ${registry}, so there is nothing to compare with.` };
    if (statusCode !== 200) return { why: unreachable(registry, `it answered ${statusCode}`) };
    return { version: z.object({ version: Version }).parse(JSON.parse(text)).version };
  } catch (error) {
    const isNonsense = error instanceof z.ZodError || error instanceof SyntaxError;
    return { why: unreachable(registry, isNonsense ? "its answer names no version" : messageOf(error)) };
  }
}

async function get(url: string, env: NodeJS.ProcessEnv, signal?: AbortSignal): Promise<{ statusCode: number; text: string }> {
  const { EnvHttpProxyAgent, request } = (await import("undici")).default;
  const named = (name: string) => env[name] || env[name.toUpperCase()] || "";
  const agent = new EnvHttpProxyAgent({
    httpProxy: named("http_proxy"),
    httpsProxy: named("https_proxy"),
    noProxy: named("no_proxy"),
  });
  try {
    const deadline = AbortSignal.timeout(DEADLINE_MS);
    const { statusCode, body } = await request(url, {
      dispatcher: agent,
      signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
      headers: { accept: "application/json" },
    });
    let text = "";
    for await (const chunk of body) {
      text += String(chunk);
      if (text.length > MAX_CHARACTERS) throw new Error("its answer is too long");
    }
    return { statusCode, text };
  } finally {
    await agent.destroy();
  }
}

function unreachable(registry: string, why: string): string {
  return `Whether there is a newer one cannot be told: ${registry} could not be asked (${why}). "updateRegistry" in config.json can name another.`;
}
