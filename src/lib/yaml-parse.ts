import { isMap, isNode, isScalar, isSeq, LineCounter, type ParsedNode, parseDocument } from "yaml";
import { messageOf } from "./errors.ts";

/** The value of a YAML text with the line of each part, or the list of its errors. */
export type YamlRead = { value: unknown; lines: ReadonlyMap<string, number> } | { problems: { line: number; message: string }[] };

const MAX_ALIASES = 50;
const MAX_PROBLEMS = 50;

/** Parses YAML without a budget; `yaml.ts` checks the budget first. */
export function parseYaml(text: string): YamlRead {
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false, logLevel: "silent" });
  if (document.errors.length > 0) {
    const problems = document.errors
      .slice(0, MAX_PROBLEMS)
      .map((error) => ({ line: counter.linePos(error.pos[0]).line, message: `is not valid YAML: ${error.message}` }));
    return { problems };
  }
  try {
    return { value: document.toJS({ maxAliasCount: MAX_ALIASES }) as unknown, lines: linesOf(document.contents, counter) };
  } catch (error) {
    return { problems: [{ line: 1, message: `cannot be read: ${messageOf(error)}` }] };
  }
}

/** The line of every value, keyed by the path of keys and indexes that leads to it. */
function linesOf(root: ParsedNode | null, counter: LineCounter): Map<string, number> {
  const lines = new Map<string, number>();
  const lineAt = (node: unknown) => (isNode(node) && node.range ? counter.linePos(node.range[0]).line : undefined);
  const visit = (node: unknown, path: readonly string[], line: number): void => {
    lines.set(JSON.stringify(path), line);
    if (isMap(node)) {
      for (const { key, value } of node.items) if (isScalar(key)) visit(value, [...path, String(key.value)], lineAt(key) ?? line);
    } else if (isSeq(node)) {
      for (const [index, item] of node.items.entries()) visit(item, [...path, String(index)], lineAt(item) ?? line);
    }
  };
  visit(root, [], lineAt(root) ?? 1);
  return lines;
}
