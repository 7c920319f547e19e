import { offThread } from "./off-thread.ts";
import { parseYaml, type YamlRead } from "./yaml-parse.ts";

/** Limits of one text. The parser recurses once per nesting level and overflows if there are too many. */
const LIMITS = { letters: 256_000, brackets: 400, indent: 100, dashes: 10, explicitKeys: 10 };
/** Texts with fewer marks than this are parsed on the main thread: it takes a few milliseconds at most. */
const SMALL = { letters: 16_000, marks: 1_500, brackets: 100 };
const DEADLINE_MS = 3_000;

/** Parses foreign YAML. A large text is parsed in a worker thread, which is terminated when it takes too long. */
export async function readYaml(text: string): Promise<YamlRead> {
  const flaw = problemIn(text);
  if (flaw !== undefined) return { problems: [{ line: 1, message: flaw }] };
  if (isSmall(text)) return parseYaml(text);
  const read = await offThread<YamlRead>("lib/yaml-worker.js", text, { deadlineMs: DEADLINE_MS });
  return read ?? { problems: [{ line: 1, message: "takes too long to read; make it smaller, without anchors and repetition" }] };
}

/** Parses small YAML synchronously, such as front matter; refuses larger texts. */
export function readSmallYaml(text: string): YamlRead {
  const flaw =
    problemIn(text) ?? (isSmall(text) ? undefined : `is too long or too tangled to be read (at most ${SMALL.letters} letters)`);
  return flaw === undefined ? parseYaml(text) : { problems: [{ line: 1, message: flaw }] };
}

function problemIn(text: string): string | undefined {
  if (text.length > LIMITS.letters) return `is longer than ${LIMITS.letters} letters`;
  const { brackets, indent, dashes, explicitKeys } = shapeOf(text);
  if (brackets > LIMITS.brackets) return `has more than ${LIMITS.brackets} brackets`;
  if (indent > LIMITS.indent || dashes > LIMITS.dashes || explicitKeys > LIMITS.explicitKeys) return "is nested too deeply";
  return undefined;
}

function isSmall(text: string): boolean {
  if (text.length > SMALL.letters || shapeOf(text).brackets > SMALL.brackets) return false;
  return (text.match(/[^\p{L}\p{N} ]/gu)?.length ?? 0) <= SMALL.marks;
}

/** An upper bound of the nesting depth: counts opening brackets only, since closing ones may be inside quotes. */
function shapeOf(text: string) {
  const shape = { brackets: text.match(/[[{]/g)?.length ?? 0, indent: 0, dashes: 0, explicitKeys: 0 };
  for (const line of text.split(/[\n\r]/)) {
    const lead = /^[\s?-]*/.exec(line)?.[0] ?? "";
    const dashes = lead.replace(/[^-]/g, "").length;
    const isRule = /^-+\s*$/.test(line);
    shape.indent = Math.max(shape.indent, lead.length);
    shape.dashes = Math.max(shape.dashes, isRule ? 0 : dashes);
    if (lead.includes("?")) shape.explicitKeys += 1;
  }
  return shape;
}
