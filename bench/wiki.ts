import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { writeFileAtomic } from "../src/lib/atomic.ts";
import { packageRoot } from "../src/lib/package-root.ts";
import { normalize } from "../src/wiki/normalize.ts";
import { openWiki } from "../src/wiki/wiki.ts";

const PAGE_CHARACTERS = 2_000;
const MATERIAL_CHARACTERS = 40_000_000;
const CATEGORIES = ["preferences", "projects", "people", "general"];
const QUERIES = 200;
const SCANS = 3;
const SAVES = 300;
const RARE_HITS = 20;

type Random = () => number;
interface Row {
  what: string;
  median: number;
  p95: number;
}

/** Compares search with a scan of the files and save with a bare atomic write, and measures the index, at two sizes. */
export async function run(args: string[] = []): Promise<void> {
  const material = readMaterial();
  console.log(`material: ${(material.length / 1e6).toFixed(1)} million characters of documents and code`);
  let missed = false;
  for (const [pages, speedup] of args.includes("--quick")
    ? [[10_000, 50] as const]
    : [[10_000, 50] as const, [100_000, 300] as const]) {
    missed = (await measure(pages, speedup, material)) || missed;
  }
  if (missed) process.exitCode = 1;
}

async function measure(pages: number, speedup: number, material: string): Promise<boolean> {
  const root = mkdtempSync(join(tmpdir(), "io-bench-wiki-"));
  const random = seeded(pages);
  const quiet = () => {};
  try {
    const files = writePages(root, pages, material, random);
    const textBytes = files.reduce((sum, file) => sum + statSync(file).size, 0);
    const wiki = openWiki({ root, emit: quiet, log: { debug: quiet, info: quiet, warn: console.warn, error: console.error } });
    const buildMs = await timed(() => wiki.rebuild());

    const slices = Array.from({ length: QUERIES * 3 }, () =>
      sliceOf(readFileSync(files[Math.floor(random() * pages)]!, "utf8"), random),
    );
    const rare: number[] = [];
    const common: number[] = [];
    const judged: { query: string; paths: string[] }[] = [];
    for (const query of slices) {
      const started = performance.now();
      const { items, more } = await wiki.search(query);
      const ms = performance.now() - started;
      const hits = items.filter((item) => item.match === "text");
      const isRare = hits.length <= RARE_HITS && !(more && hits.length === items.length);
      (isRare ? rare : common).push(ms);
      if (isRare && judged.length < SCANS) judged.push({ query, paths: hits.map((hit) => hit.path).sort() });
    }
    const scans: number[] = [];
    let wrong = 0;
    for (const { query, paths } of judged) {
      const started = performance.now();
      const found = scan(root, query);
      scans.push(performance.now() - started);
      if (found.sort().join("\n") !== paths.join("\n")) wrong += 1;
    }

    const bareNew: number[] = [];
    const bareOver: number[] = [];
    const emptyNew: number[] = [];
    const emptyOver: number[] = [];
    const saveNew: number[] = [];
    const saveOver: number[] = [];
    // A folder as full as the wiki's, since creating a file takes longer the more files are beside it.
    mkdirSync(join(root, "bare"));
    mkdirSync(join(root, "empty"));
    for (const name of readdirSync(join(root, "pages", "general"))) writeFileSync(join(root, "bare", name), "");
    for (let at = 0; at < SAVES; at += 1) {
      const text = pageOf(material, random);
      const bare = join(root, "bare", `${at}.md`);
      const save = (content: string) => timed(() => void wiki.write(`general/saved-${at}`, content));
      const write = (content: string) => timed(() => writeFileAtomic(bare, content));
      const writeBeside = (content: string) => timed(() => writeFileAtomic(join(root, "empty", `${at}.md`), content));
      // Alternate the order, since the second one pays for what the first left to be written.
      for (const [content, bares, empties, saves] of [
        [text, bareNew, emptyNew, saveNew] as const,
        [`${text}\nagain`, bareOver, emptyOver, saveOver] as const,
      ]) {
        if (at % 2 === 0) bares.push(await write(content));
        saves.push(await save(content));
        if (at % 2 === 1) bares.push(await write(content));
        empties.push(await writeBeside(content));
      }
      await turn();
    }
    const settleMs = await timed(() => wiki.settled());
    const changed = await timed(() => void wiki.write("general/needle", "# Needle\n\nxylophone quux zebra"));
    const found = (await wiki.search("PHONE quux")).items[0]?.path === "pages/general/needle.md";
    await wiki.close();
    const indexBytes = statSync(join(root, ".index.db")).size;
    const opening = performance.now();
    const again = openWiki({ root, emit: quiet, log: { debug: quiet, info: quiet, warn: console.warn, error: console.error } });
    await again.search("xylophone quux");
    const openMs = performance.now() - opening;
    await again.close();

    console.log(`\n${pages.toLocaleString("en")} pages, ${(textBytes / 1e6).toFixed(1)} MB of text`);
    table([
      row(`search, rare phrase (${rare.length} slices)`, rare),
      row(`search, common phrase (${common.length} slices)`, common),
      row(`scan of the files (${scans.length} runs)`, scans),
      row("save of a new page", saveNew),
      row("bare atomic write of a new file", bareNew),
      row("save over a page", saveOver),
      row("bare atomic write over a file", bareOver),
      row("the same, new, in a folder of its own", emptyNew),
      row("the same, over, in a folder of its own", emptyOver),
    ]);
    const faster = percentile(scans, 0.5) / percentile(rare, 0.5);
    const ratio = (fresh: number[], over: number[]) =>
      Math.max(percentile(saveNew, 0.5) / percentile(fresh, 0.5), percentile(saveOver, 0.5) / percentile(over, 0.5));
    const slower = ratio(bareNew, bareOver);
    const larger = indexBytes / textBytes;
    console.log(
      `index built in ${(buildMs / 1000).toFixed(1)} s; ${2 * SAVES} saves indexed afterwards in ${settleMs.toFixed(0)} ms; ` +
        `opened, compared with the files and searched in ${openMs.toFixed(0)} ms; last save ${changed.toFixed(2)} ms`,
    );
    const verdicts = [
      target(`search is ${faster.toFixed(0)} times faster than the scan (at least ${speedup})`, faster >= speedup),
      target(
        `p95 of search is ${(percentile(scans, 0.5) / percentile(rare, 0.95)).toFixed(0)} times faster (not a target)`,
        true,
      ),
      target(`save takes ${slower.toFixed(2)} times the bare write into an equally full folder (at most 3)`, slower <= 3),
      target(
        `save takes ${ratio(emptyNew, emptyOver).toFixed(2)} times the bare write into an empty folder (not a target)`,
        true,
      ),
      target(`index is ${larger.toFixed(2)} times the text (at most 1.5)`, larger <= 1.5),
      target(`${wrong} of ${judged.length} scans differ from the search`, wrong === 0 && found),
    ];
    return verdicts.includes(false);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Does what a search without an index does: reads and normalizes every page, and searches it. */
function scan(root: string, query: string): string[] {
  const wanted = normalize(query);
  return CATEGORIES.flatMap((category) =>
    readdirSync(join(root, "pages", category))
      .filter((name) => normalize(readFileSync(join(root, "pages", category, name), "utf8")).includes(wanted))
      .map((name) => `pages/${category}/${name}`),
  );
}

export function writePages(root: string, pages: number, material: string, random: Random): string[] {
  for (const category of CATEGORIES) mkdirSync(join(root, "pages", category), { recursive: true });
  return Array.from({ length: pages }, (_, at) => {
    const file = join(root, "pages", CATEGORIES[at % CATEGORIES.length]!, `page-${at}.md`);
    writeFileSync(file, pageOf(material, random));
    return file;
  });
}

function pageOf(material: string, random: Random): string {
  const piece = (length: number) => {
    const at = Math.floor(random() * (material.length - length));
    return material.slice(at, at + length);
  };
  const title =
    piece(60)
      .replace(/[^\p{L}\p{N} ]+/gu, " ")
      .replace(/\s+/g, " ")
      .trim() || "Notes";
  return `# ${title}\n\n${piece(PAGE_CHARACTERS / 2)}\n\n${piece(PAGE_CHARACTERS / 2 - 70)}\n`.replace(/[\ud800-\udfff]/gu, "");
}

/** Ten to forty characters of a page, on one line. */
export function sliceOf(text: string, random: Random): string {
  for (;;) {
    const at = Math.floor(random() * text.length);
    const slice = text
      .slice(at, at + 10 + Math.floor(random() * 30))
      .split("\n")[0]!
      .trim();
    if ([...slice].length >= 8) return slice;
  }
}

/** The documents and code of this package and its dependencies, in a fixed order. */
export function readMaterial(): string {
  const parts: string[] = [];
  let length = 0;
  const visit = (folder: string, depth: number) => {
    for (const item of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (length > MATERIAL_CHARACTERS) return;
      const path = join(folder, item.name);
      if (item.isDirectory() && depth < 8 && !item.name.startsWith(".")) visit(path, depth + 1);
      else if (item.isFile() && /\.(md|ts|js|mjs|cjs|txt)$/i.test(item.name) && statSync(path).size < 400_000) {
        const text = readFileSync(path, "utf8").replaceAll("\r", "");
        parts.push(text);
        length += text.length;
      }
    }
  };
  for (const folder of ["docs", "src", "test", "node_modules"]) {
    if (statSync(join(packageRoot, folder), { throwIfNoEntry: false })) visit(join(packageRoot, folder), 0);
  }
  return parts.join("\n");
}

export function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

async function timed(work: () => void | Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

function row(what: string, values: readonly number[]): Row {
  return { what, median: percentile(values, 0.5), p95: percentile(values, 0.95) };
}

function table(rows: readonly Row[]): void {
  console.log(`${"ms".padEnd(40)}${"median".padStart(10)}${"p95".padStart(10)}`);
  for (const { what, median, p95 } of rows)
    console.log(`${what.padEnd(40)}${median.toFixed(3).padStart(10)}${p95.toFixed(3).padStart(10)}`);
}

function target(what: string, met: boolean): boolean {
  console.log(`${met ? "ok    " : "MISSED"} ${what}`);
  return met;
}
