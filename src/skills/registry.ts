import { z } from "zod";
import { messageOf, UserError, unavailable } from "../lib/errors.ts";
import { withoutEnd } from "../lib/trim.ts";
import type { FoundSkill } from "../protocol/skills.ts";
import { safeLine } from "./manifest.ts";

const MAX_BYTES = 1_000_000;
const MAX_RESULTS = 50;

const text = z.string().optional().catch(undefined);
const Entry = z.looseObject({
  name: text,
  skillId: text,
  slug: text,
  title: text,
  id: text,
  description: text,
  summary: text,
  url: text,
  repo_url: text,
  repoUrl: text,
  repository: z
    .union([z.string(), z.looseObject({ url: z.string() }).transform(({ url }) => url)])
    .optional()
    .catch(undefined),
  repo: text,
  source: text,
  installs: z.number().optional().catch(undefined),
});
const Answer = z
  .union([
    z.array(z.unknown()),
    z.looseObject({ skills: z.array(z.unknown()) }).transform(({ skills }) => skills),
    z.looseObject({ results: z.array(z.unknown()) }).transform(({ results }) => results),
    z.looseObject({ items: z.array(z.unknown()) }).transform(({ items }) => items),
    z.looseObject({ data: z.array(z.unknown()) }).transform(({ data }) => data),
  ])
  .transform((entries) => entries.flatMap((entry) => found(Entry.safeParse(entry).data)));

/** Searches the registry for skills. Throws a UserError that says what is wrong if it does not answer with a list. */
export async function searchRegistry(
  base: string,
  query: string,
  deadlineMs = 10_000,
  signal?: AbortSignal,
): Promise<FoundSkill[]> {
  const address = new URL(`${withoutEnd(base, "/")}/api/search`);
  address.searchParams.set("q", query);
  const deadline = AbortSignal.timeout(deadlineMs);
  const body = await ask(address, signal ? AbortSignal.any([signal, deadline]) : deadline).catch((error: unknown) => {
    if (error instanceof UserError) throw error;
    const why = deadline.aborted
      ? `no answer in ${deadlineMs / 1000} s`
      : messageOf(error instanceof Error && error.cause ? error.cause : error);
    throw unavailable(
      `The skills registry at ${address.host} cannot be reached (${why}). Installed skills work without it; "io skill add <git url>" still installs.`,
      error,
    );
  });
  const answer = Answer.safeParse(asJson(body, address.host));
  if (!answer.success)
    throw unavailable(`The skills registry at ${address.host} answered with something that is not a list of skills.`);
  return answer.data.slice(0, MAX_RESULTS);
}

async function ask(address: URL, signal: AbortSignal): Promise<string> {
  const response = await fetch(address, { signal, headers: { accept: "application/json" } });
  if (!response.ok) {
    await response.body?.cancel();
    throw unavailable(
      `The skills registry at ${address.host} answered ${response.status}. Try again later, or set skillsRegistry in the config.`,
    );
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES)
      throw new UserError(`The skills registry at ${address.host} answered with more than 1 MB. Ask for something narrower.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function asJson(body: string, host: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    throw unavailable(`The skills registry at ${host} did not answer with JSON. Check skillsRegistry in the config.`, error);
  }
}

function found(entry: z.infer<typeof Entry> | undefined): FoundSkill[] {
  const name = safeLine(entry?.name ?? entry?.title ?? entry?.skillId ?? entry?.slug ?? entry?.id ?? "", 100);
  if (!entry || name === "") return [];
  const where = entry.repo_url ?? entry.repoUrl ?? entry.repository ?? entry.repo ?? entry.source ?? entry.url ?? "";
  const url = /^[\w-][\w.-]*\/[\w.-]+$/.test(where) ? `https://github.com/${where}` : where;
  return [
    {
      name,
      description: safeLine(entry.description ?? entry.summary ?? "", 300),
      url: safeLine(url, 500),
      ...(entry.installs === undefined ? {} : { installs: entry.installs }),
    },
  ];
}
