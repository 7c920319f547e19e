import { createBreath } from "../lib/breath.ts";
import { estimateTokens } from "../lib/estimate-tokens.ts";
import { named, oneLine } from "../lib/quoted.ts";
import type { View } from "./indexer.ts";
import type { Entry } from "./page-index.ts";

/** The longest wiki summary in a prompt. */
export const SUMMARY_TOKENS = 1_500;
const CONSIDERED = 200;
const DAY_MS = 86_400_000;

/** Summarizes the wiki for a prompt: one line for each of the most used and most recently changed pages. */
export async function summarize(view: View, maxTokens: number, now: number): Promise<string> {
  const { index, fresh } = view;
  const used = index.mostRead(CONSIDERED);
  const changed = [...[...fresh].slice(-CONSIDERED), ...used.filter((path) => fresh.has(path))];
  const known = [...index.newest(CONSIDERED), ...index.getAll(used)].filter(({ path }) => !fresh.has(path));
  const entries = new Map<string, Entry>(known.map((entry) => [entry.path, entry]));
  const breathe = createBreath();
  for (const path of changed) {
    const entry = view.read(path);
    if (entry) entries.set(path, entry);
    await breathe();
  }
  if (entries.size === 0) return "";

  const scoreOf = ({ path, mtime }: Entry) => Math.log(1 + index.reads(path)) - Math.log(1 + Math.max(0, now - mtime) / DAY_MS);
  const ranked = [...entries.values()].map((entry) => ({ entry, score: scoreOf(entry) }));
  ranked.sort((a, b) => b.score - a.score || b.entry.mtime - a.entry.mtime || (a.entry.path < b.entry.path ? -1 : 1));

  const total = await countPages(view);
  const heading = (shown: number) =>
    `The wiki has ${total} page${total === 1 ? "" : "s"}${shown < total ? `; these ${shown} were used most or changed last` : ""}:`;
  const lines: string[] = [];
  let left = Math.min(maxTokens, SUMMARY_TOKENS) - estimateTokens(heading(total - 1)) - 1;
  for (const { entry } of ranked) {
    const line = lineOf(entry);
    const cost = estimateTokens(line) + 1;
    if (cost > left) continue;
    left -= cost;
    lines.push(line);
  }
  return lines.length === 0 ? "" : [heading(lines.length), ...lines].join("\n");
}

/** The number of pages, including those not indexed yet. */
export async function countPages({ index, fresh, has }: View, under = "pages/"): Promise<number> {
  const breathe = createBreath();
  let count = index.count(under);
  for (const path of fresh) {
    if (!path.startsWith(under)) continue;
    count += (has(path) ? 1 : 0) - (index.get(path) === undefined ? 0 : 1);
    await breathe();
  }
  return count;
}

function lineOf({ path, title, tags, excerpt }: Entry): string {
  const isNamed = title === path.slice(path.lastIndexOf("/") + 1, -".md".length);
  const tagged = tags.slice(0, 5).map((tag) => oneLine(tag, 60));
  return [
    `- ${named(path.slice("pages/".length, -".md".length), 300)}:`,
    ...(isNamed ? [] : [` ${oneLine(title, 200)}`]),
    ...(tagged.length > 0 ? [` [${tagged.join(", ")}]`] : []),
    ...(excerpt ? [` – ${oneLine(excerpt, 200)}`] : []),
  ].join("");
}
