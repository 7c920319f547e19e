import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const FRAME = /(file:\/\/(?:\/[A-Za-z]:)?[^\s():]+\.js):(\d+):(\d+)/g;

/**
 * An error's stack with the files and lines of `src` instead of the bundle's. Source maps are read only when an error occurs:
 * Node's option for them costs every start 40 ms and the daemon some megabytes, and its `SourceMap` blocks the event loop for
 * 40 ms a map.
 */
export function stackOf(error: Error): string | undefined {
  const { stack } = error;
  const frames = [...(stack ?? "").matchAll(FRAME)].map(([text, url = "", line, column]) => ({
    text,
    url,
    line: Number(line) - 1,
    column: Number(column) - 1,
  }));
  const originals = new Map<string, string>();
  for (const url of new Set(frames.map((frame) => frame.url))) {
    const map = readMap(url);
    if (!map) continue;
    const ofFile = frames.filter((frame) => frame.url === url);
    findOriginals(map.mappings, ofFile).forEach((found, index) => {
      const source = found && map.sources[found.source]?.replace(/^(?:\.\.\/)+/, "");
      if (source) originals.set(ofFile[index]!.text, `${source}:${found.line + 1}:${found.column + 1}`);
    });
  }
  return stack?.replace(FRAME, (frame) => originals.get(frame) ?? frame);
}

interface SourceMap {
  sources: string[];
  /** Segments of base64 digits: `,` ends a segment, `;` a line of the generated file. */
  mappings: string;
}

function readMap(url: string): SourceMap | undefined {
  try {
    return JSON.parse(readFileSync(`${fileURLToPath(url)}.map`, "utf8")) as SourceMap;
  } catch {
    // A file without a source map keeps its name.
    return undefined;
  }
}

/** In a file, counted from 0. */
interface Position {
  line: number;
  column: number;
}
interface Original extends Position {
  source: number;
}

const COMMA = ",".charCodeAt(0);
const SEMICOLON = ";".charCodeAt(0);
const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/**
 * For each position of the generated file the original one of the last segment before it on its line. A segment's fields are
 * differences from the segment before: generated column (which starts anew on each line), source, original line and column.
 */
function findOriginals(mappings: string, positions: Position[]): (Original | undefined)[] {
  const values = new Int8Array(128);
  for (let value = 0; value < DIGITS.length; value += 1) values[DIGITS.charCodeAt(value)] = value;
  const found: (Original | undefined)[] = positions.map(() => undefined);
  const lastLine = Math.max(...positions.map(({ line }) => line));
  const fields = new Int32Array(5);
  let field = 0;
  let value = 0;
  let shift = 0;
  let line = 0;
  let wanted = positions.some((position) => position.line === 0);
  for (let at = 0; at <= mappings.length && line <= lastLine; at += 1) {
    const char = at < mappings.length ? mappings.charCodeAt(at) : SEMICOLON;
    if (char !== COMMA && char !== SEMICOLON) {
      const digit = values[char]!;
      value |= (digit & 31) << shift;
      shift += 5;
      if (digit & 32) continue;
      fields[field]! += value & 1 ? -(value >> 1) : value >> 1;
      field += 1;
      value = 0;
      shift = 0;
      continue;
    }
    if (wanted && field >= 4)
      positions.forEach((position, index) => {
        if (position.line !== line || fields[0]! > position.column) return;
        found[index] = { source: fields[1]!, line: fields[2]!, column: fields[3]! };
      });
    field = 0;
    if (char === COMMA) continue;
    line += 1;
    fields[0] = 0;
    wanted = positions.some((position) => position.line === line);
  }
  return found;
}
