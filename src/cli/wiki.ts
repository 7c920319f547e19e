import type { Command } from "commander";
import { usageError } from "../lib/errors.ts";
import { terminalSafe } from "../lib/terminal-safe.ts";
import { type Contradiction, formatPageChange, type PageReview } from "../protocol/page-review.ts";
import { confirm, readContent, wholeNumber } from "./input.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

interface PageInfo {
  path: string;
  title: string;
  bytes: number;
  updatedAt: string;
}
type Written = PageInfo & { contradictions: Contradiction[] };
interface PageList {
  items: PageInfo[];
  total: number;
  next?: string;
}
interface Hits {
  items: { path: string; title: string; snippet: string; match: "text" | "words" }[];
  more: boolean;
}
type Versions = { items: { version: string; savedAt: string; bytes: number }[] };
type Source = { name: string; bytes: number; updatedAt: string };

/** The limits of the routes, checked here for a better message. */
const MOST_PAGES = 1_000;
const MOST_HITS = 200;

/** `io wiki`: the wiki. */
export function wikiCommands(program: Command, shell: Shell): void {
  const wiki = program.command("wiki").description("IO's memory: pages, their history, and raw sources");

  wiki
    .command("list")
    .description("the pages, by path")
    .option("--under <folder>", "only those in a folder, such as projects")
    .option("--after <path>", "go on after this page")
    .option("--limit <count>", "how many at most")
    .option(...JSON_OPTION)
    .action(async ({ json, ...query }: Json & { under?: string; after?: string; limit?: string }) => {
      if (query.limit !== undefined) wholeNumber("--limit", query.limit, MOST_PAGES);
      const list = await shell.client().request<PageList>("GET", `/api/wiki/pages${queryOf(query)}`);
      const lines = list.items.map(({ path, title }) => `${path}  ${title}`);
      const rest = list.next === undefined ? [] : [`(${list.total} in all; go on with --after ${list.next})`];
      shell.print(list, () => [...lines, ...rest].join("\n") || "The wiki has no pages yet.", { json });
    });

  wiki
    .command("read")
    .description("print a page")
    .argument("<path>", "such as projects/my-app")
    .option("--at <version>", "an earlier version, as history names it")
    .option(...JSON_OPTION)
    .action(async (path: string, { json, at }: Json & { at?: string }) => {
      const address = at === undefined ? pageRoute(path) : `${pageRoute(path, "history")}${queryOf({ version: at })}`;
      const page = await shell.client().request<{ content: string }>("GET", address);
      printText(shell, page, page.content, { json });
    });

  wiki
    .command("write")
    .description("make or replace a page")
    .argument("<path>", "such as projects/my-app")
    .argument("[content]", 'the page; "-" reads standard input')
    .option("--file <file>", "take the page from a file")
    .option(...JSON_OPTION)
    .action(async (path: string, given: string | undefined, { json, file }: Json & { file?: string }) => {
      const content = await readContent(given, file);
      const page = await shell.client().request<Written>("PUT", pageRoute(path), { content });
      const saved = `Saved ${page.path} ("${page.title}", ${page.bytes} bytes).`;
      shell.print(page, () => [saved, ...page.contradictions.map(contradictionLines)].join("\n"), { json });
    });

  wiki
    .command("search")
    .description("pages that hold a text, the best first")
    .argument("<query>", "any part of the text; case does not matter")
    .option("--limit <count>", "how many at most")
    .option(...JSON_OPTION)
    .action(async (q: string, { json, limit }: Json & { limit?: string }) => {
      if (limit !== undefined) wholeNumber("--limit", limit, MOST_HITS);
      const hits = await shell.client().request<Hits>("GET", `/api/wiki/search${queryOf({ q, limit })}`);
      const lines = hits.items.map(
        ({ path, title, snippet, match }) =>
          `${path}  ${title}${match === "words" ? " (only the words)" : ""}\n    ${snippet.replace(/\s+/g, " ")}`,
      );
      const rest = hits.more ? ["(there are more; raise --limit)"] : [];
      shell.print(hits, () => [...lines, ...rest].join("\n") || `No page holds "${q}".`, { json });
    });

  wiki
    .command("delete")
    .description("delete a page; its history is kept")
    .argument("<path>")
    .option("--yes", "do not ask")
    .option(...JSON_OPTION)
    .action(async (path: string, { json, yes }: Json & { yes?: boolean }) => {
      const client = shell.client();
      await confirm(shell, `Delete the page ${path}?`, yes);
      const page = await client.request<PageInfo>("DELETE", pageRoute(path));
      shell.print(page, () => `Deleted ${page.path}. "io wiki history ${path}" shows what can be restored.`, { json });
    });

  reviewCommand(wiki, shell);
  wiki
    .command("history")
    .description("earlier versions of a page, the newest first")
    .argument("<path>")
    .option(...JSON_OPTION)
    .action(async (path: string, { json }: Json) => {
      const versions = await shell.client().request<Versions>("GET", pageRoute(path, "history"));
      const lines = versions.items.map(({ version, savedAt, bytes }) => `${version}  ${savedAt}  ${bytes} bytes`);
      shell.print(versions, lines.join("\n") || "There are no earlier versions.", { json });
    });

  wiki
    .command("restore")
    .description("bring back an earlier version of a page")
    .argument("<path>")
    .argument("<version>", "as history names it")
    .option(...JSON_OPTION)
    .action(async (path: string, version: string, { json }: Json) => {
      const page = await shell.client().request<PageInfo>("POST", "/api/wiki/restore", { path, version });
      shell.print(page, () => `Restored ${page.path} ("${page.title}", ${page.bytes} bytes).`, { json });
    });

  sourceCommands(wiki, shell);
}

function sourceCommands(wiki: Command, shell: Shell): void {
  const source = wiki.command("source").description("raw texts that have not been made into pages");

  source
    .command("list")
    .description("the sources, by name")
    .option(...JSON_OPTION)
    .action(async ({ json }: Json) => {
      const list = await shell.client().request<{ items: Source[] }>("GET", "/api/wiki/sources");
      const lines = list.items.map(({ name, bytes, updatedAt }) => `${name}  ${bytes} bytes  ${updatedAt}`);
      shell.print(list, lines.join("\n") || "There are no sources yet.", { json });
    });

  source
    .command("read")
    .description("print a source")
    .argument("<name>")
    .option(...JSON_OPTION)
    .action(async (name: string, { json }: Json) => {
      const found = await shell.client().request<{ content: string }>("GET", sourceRoute(name));
      printText(shell, found, found.content, { json });
    });

  source
    .command("write")
    .description("store a source; its name is made safe")
    .argument("<name>")
    .argument("[content]", 'the text; "-" reads standard input')
    .option("--file <file>", "take the text from a file")
    .option(...JSON_OPTION)
    .action(async (name: string, given: string | undefined, { json, file }: Json & { file?: string }) => {
      const content = await readContent(given, file);
      const stored = await shell.client().request<Source>("PUT", sourceRoute(name), { content });
      shell.print(stored, `Stored ${stored.name} (${stored.bytes} bytes).`, { json });
    });
}

/** Prints a page byte for byte; on a terminal, without control characters. */
function printText(shell: Shell, document: unknown, text: string, { json }: Json): void {
  if (json) shell.print(document, "", { json });
  else process.stdout.write(shell.isTerminal ? `${terminalSafe(text).replace(/\n$/, "")}\n` : text);
}

/** The path is encoded as one segment, so that dots in it cannot change the address. */
function pageRoute(path: string, kind: "pages" | "history" = "pages"): string {
  return `/api/wiki/${kind}/${encodeURIComponent(path.startsWith("pages/") ? path : `pages/${path}`)}`;
}

function sourceRoute(name: string): string {
  return `/api/wiki/sources/${encodeURIComponent(name)}`;
}

function queryOf(values: Record<string, string | undefined>): string {
  const given = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? "" : `?${new URLSearchParams(given)}`;
}

const VERDICTS = { keep: "Kept", change: "Changed", revert: "Reverted" } as const;
type ReviewOptions = Json & { file?: string };

/** `io wiki review`: lets a person review what agents wrote. */
function reviewCommand(wiki: Command, shell: Shell): void {
  wiki
    .command("review")
    .description(
      "what agents, or others outside IO, wrote since you last looked; keep it, change it, or bring back what stood there before",
    )
    .argument("[verdict]", "keep, change or revert; without it, all pages are listed")
    .argument("[path]", "the page")
    .argument("[content]", 'with change: what it says instead; "-" reads standard input')
    .option("--file <file>", "with change: take the page from a file")
    .option(...JSON_OPTION)
    .action(async (verdict: string | undefined, path: string | undefined, given: string | undefined, options: ReviewOptions) => {
      if (verdict === undefined) {
        const list = await shell.client().request<{ items: PageReview[] }>("GET", "/api/wiki/review");
        shell.print(
          list,
          () => list.items.map(reviewLine).join("\n") || "Nobody changed anything since you last looked.",
          options,
        );
        return;
      }
      const said = Object.hasOwn(VERDICTS, verdict) ? VERDICTS[verdict as keyof typeof VERDICTS] : undefined;
      const isChange = verdict === "change";
      if (said === undefined || path === undefined || (!isChange && (given !== undefined || options.file !== undefined)))
        throw usageError(
          "Say what to do with which page: io wiki review keep <path>, change <path> <content>, or revert <path>.",
        );
      const body = { path, verdict, ...(isChange && { content: await readContent(given, options.file) }) };
      const done = await shell.client().request<PageReview>("POST", "/api/wiki/review", body);
      shell.print(done, `${said} ${done.path}.`, options);
    });
}

function contradictionLines({ says, otherPath, otherSays }: Contradiction): string {
  return `  contradicts ${otherPath}: ${otherSays}\n    it says: ${says}`;
}

function reviewLine(review: PageReview): string {
  const { path, by, said, at, fromOutside, contradictions } = review;
  const mark = fromOutside && by === "agent" ? "  [after reading text from outside]" : "";
  const line = `${path}  ${formatPageChange(review)}, ${at.slice(0, 16).replace("T", " ")} UTC${mark}${said ? `  asked: ${said.slice(0, 80)}` : ""}`;
  return [line, ...contradictions.map(contradictionLines)].join("\n");
}
