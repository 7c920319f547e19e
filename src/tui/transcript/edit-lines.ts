import type { FileEdit } from "../../protocol/messages.ts";
import { coloured, dim, type Line } from "../text/style.ts";
import { clip } from "../text/wrap.ts";
import { safe } from "./blocks.ts";

const CONTEXT = 2;
const MOST_LINES = 24;

/** The removed and added lines of an edit, with a little context. */
export function editLines({ before, after }: FileEdit, width: number): Line[] {
  const old = before === null ? [] : linesOf(before);
  const fresh = linesOf(after);
  let start = 0;
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start += 1;
  let same = 0;
  while (same < old.length - start && same < fresh.length - start && old.at(-1 - same) === fresh.at(-1 - same)) same += 1;
  const gone = old.slice(start, old.length - same);
  const come = fresh.slice(start, fresh.length - same);
  const around = (lines: readonly string[]) => lines.map((text): Line => [dim(`      ${safe(text)}`)]);
  const lines: Line[] = [
    ...around(fresh.slice(Math.max(0, start - CONTEXT), start)),
    ...gone.map((text): Line => [coloured(`    - ${safe(text)}`, "red")]),
    ...come.map((text): Line => [coloured(`    + ${safe(text)}`, "green")]),
    ...around(fresh.slice(fresh.length - same, fresh.length - same + CONTEXT)),
  ];
  const more = lines.length - MOST_LINES;
  const shown = more > 0 ? [...lines.slice(0, MOST_LINES - 1), [dim(`    … ${more + 1} more lines (/diff)`)]] : lines;
  return shown.map((line) => clip(line, width));
}

/** The line break at the end of a text does not start another line. */
function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
