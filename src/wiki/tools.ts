import { z } from "zod";
import { UserError } from "../lib/errors.ts";
import { named, oneLine, quoted } from "../lib/quoted.ts";
import { asData, fromOutside } from "../lib/untrusted.ts";
import type { Contradiction } from "../protocol/page-review.ts";
import { type Tool, ToolError, tool } from "../tools/tool.ts";
import type { Contradictions } from "./noted-contradictions.ts";
import type { Provenance } from "./provenance.ts";
import type { Wiki } from "./wiki.ts";

const DEADLINE_MS = 30_000;
const LISTED = 200;
const READ_CHARACTERS = 20_000;
const Path = z.string().min(1).describe('such as "projects/my-app"');

export interface WikiToolsDeps {
  wiki: Wiki;
  contradictions: Pick<Contradictions, "check">;
  provenance: Pick<Provenance, "mark">;
}

/** The wiki's tools for the model. */
export function wikiTools({ wiki, contradictions, provenance }: WikiToolsDeps): Tool[] {
  return [
    tool({
      name: "wiki_read",
      description: "Read a wiki page.",
      schema: z.strictObject({ path: Path }),
      kind: "read",
      deadlineMs: DEADLINE_MS,
      run: ({ path }) =>
        withToolErrors(() => {
          const { content, path: name } = wiki.read(path);
          if (content.length <= READ_CHARACTERS) return asData(content);
          return `${asData(content.slice(0, READ_CHARACTERS))}\n… ${named(name, 300)} goes on for ${content.length - READ_CHARACTERS} characters; search it for the rest.`;
        }),
    }),
    tool({
      name: "wiki_write",
      description:
        "Create or replace a wiki page (markdown; begin with a # title). Folders: preferences, projects, people, general.",
      schema: z.strictObject({
        path: Path,
        content: z.string(),
        source: z.string().min(1).max(300).optional().describe("the wiki_source it is made from; the page links to it"),
      }),
      kind: "effect",
      deadlineMs: DEADLINE_MS,
      run: ({ path, content, source }, { owner, actor }) =>
        withToolErrors(async () => {
          const name = source === undefined ? undefined : wiki.sources.read(source).name;
          const page = wiki.write(path, provenance.mark({ owner, actor }, { path, content, source: name }));
          const done = `${page.created ? "Created" : "Updated"} ${named(page.path, 300)} (${quoted(page.title)}, ${page.bytes} bytes).`;
          const found = await contradictions.check(page.path);
          return found.length === 0 ? done : `${done}\n${describeContradictions(found)}`;
        }),
    }),
    tool({
      name: "wiki_search",
      description: "Find wiki pages by any text they hold; case does not matter.",
      schema: z.strictObject({ query: z.string().min(1), limit: z.number().int().min(1).max(100).optional() }),
      kind: "read",
      deadlineMs: DEADLINE_MS,
      run: ({ query, limit = 10 }) =>
        withToolErrors(async () => {
          const { items, more } = await wiki.search(query, { limit });
          if (items.length === 0) return `No page holds ${quoted(query, 200)}. Try fewer or other words.`;
          const lines = items.map(({ path, title, match, snippet }) => {
            return `${named(path, 300)} – ${oneLine(title, 200)}${match === "words" ? " (only the words, not the phrase)" : ""}\n  ${oneLine(snippet, 600)}`;
          });
          return [
            asData(lines.join("\n")),
            ...(more ? [`There are more; raise the limit (now ${limit}) or ask more narrowly.`] : []),
          ].join("\n");
        }),
    }),
    tool({
      name: "wiki_list",
      description: "List the wiki's pages.",
      schema: z.strictObject({}),
      kind: "read",
      deadlineMs: DEADLINE_MS,
      run: () =>
        withToolErrors(async () => {
          const { items, total } = await wiki.list({ limit: LISTED });
          if (total === 0) return "The wiki has no pages yet.";
          const lines = items.map(({ path, title }) => `${named(path, 300)} – ${oneLine(title, 200)}`);
          const rest = total - items.length;
          return [
            `${total} page${total === 1 ? "" : "s"}:`,
            asData(lines.join("\n")),
            ...(rest > 0 ? [`… and ${rest} more; use wiki_search.`] : []),
          ].join("\n");
        }),
    }),
    tool({
      name: "wiki_source",
      description: "Raw texts that the user stored for the wiki, such as notes: list them, or read one by name.",
      schema: z.strictObject({ name: z.string().min(1).max(300).optional(), offset: z.number().int().min(0).optional() }),
      kind: "read",
      deadlineMs: DEADLINE_MS,
      run: ({ name, offset = 0 }) =>
        withToolErrors(() => (name === undefined ? describeSources(wiki) : describeSource(wiki, name, offset))),
    }),
    tool({
      name: "wiki_delete",
      description: "Delete a wiki page; its versions are kept.",
      schema: z.strictObject({ path: Path }),
      kind: "effect",
      deadlineMs: DEADLINE_MS,
      run: ({ path }) => withToolErrors(() => `Deleted ${named(wiki.delete(path).path, 300)}. Its history can restore it.`),
    }),
  ];
}

function describeSources(wiki: Wiki): string {
  const all = wiki.sources.list();
  if (all.length === 0) return "There are no sources.";
  const lines = all.slice(0, LISTED).map(({ name, bytes, updatedAt }) => `${named(name, 300)} (${bytes} bytes, ${updatedAt})`);
  const rest = all.length - lines.length;
  return [asData(lines.join("\n")), ...(rest > 0 ? [`… and ${rest} more.`] : [])].join("\n");
}

function describeSource(wiki: Wiki, given: string, offset: number): string {
  const { name, content } = wiki.sources.read(given);
  const part = content.slice(offset, offset + READ_CHARACTERS);
  const next = offset + part.length;
  const text = fromOutside(`the source ${named(name, 300)}`, part);
  return next >= content.length ? text : `${text}\n… it goes on for ${content.length - next} characters: offset ${next}.`;
}

function describeContradictions(found: readonly Contradiction[]): string {
  const lines = found.flatMap(({ path, says, otherPath, otherSays }) => [
    `${named(otherPath, 300)}: ${oneLine(otherSays, 300)}`,
    `  but ${named(path, 300)}: ${oneLine(says, 300)}`,
  ]);
  return `This contradicts what is written already. Find out which is right and correct the other, or ask the user.\n${asData(lines.join("\n"))}`;
}

/** Passes errors that a person could fix to the model, which can fix them too. */
async function withToolErrors(work: () => string | Promise<string>): Promise<string> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UserError) throw new ToolError(error.message, { cause: error });
    throw error;
  }
}
