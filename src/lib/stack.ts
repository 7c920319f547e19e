import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { fileURLToPath } from "node:url";

/**
 * An error's stack with the files and lines of `src` instead of the bundle's. Source maps are loaded only when an error
 * occurs: Node's own option costs every start 40 ms and the daemon some megabytes.
 */
export function stackOf(error: Error): string | undefined {
  const maps = new Map<string, SourceMap | undefined>();
  return error.stack?.replace(
    /(file:\/\/(?:\/[A-Za-z]:)?[^\s():]+\.js):(\d+):(\d+)/g,
    (frame, url: string, line: string, column: string) => {
      if (!maps.has(url)) maps.set(url, mapOf(url));
      const entry = maps.get(url)?.findEntry(Number(line) - 1, Number(column) - 1);
      if (!entry || !("originalSource" in entry)) return frame;
      const source = entry.originalSource.replace(/^(?:\.\.\/)+/, "");
      return `${source}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
    },
  );
}

function mapOf(url: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${fileURLToPath(url)}.map`, "utf8")));
  } catch {
    // A file without a source map keeps its name.
    return undefined;
  }
}
