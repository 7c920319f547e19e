import { type Draft, layOut } from "../input/editor.ts";
import { dim, type Line, type Looks, lineWidth, paint } from "../text/style.ts";
import { chop, clip } from "../text/wrap.ts";
import type { Frame, Row } from "./screen.ts";

/** Everything in the live region, from top to bottom. */
export interface LiveParts {
  underWay: readonly Line[];
  /** A question to the user. */
  question: readonly Line[];
  /** Queued messages and the spinner. */
  activity: readonly Line[];
  draft: Draft;
  /** Completions, or a hint. */
  hint: readonly Line[];
  status: Line;
}

export interface LayoutOptions {
  width: number;
  height: number;
  looks: Looks;
}

const PROMPT = 2;
const GROUND = 2;

/** Lays out the live region, which is never taller than the screen. What does not fit is cut from the top. */
export function layOutLive(parts: LiveParts, { width, height, looks }: LayoutOptions): Pick<Frame, "live" | "caret"> {
  const editor = editorRows(parts.draft, width, Math.max(1, Math.min(10, Math.floor(height / 3))), looks);
  const hint = parts.hint.map((line) => clip(line, width));
  const fixed = editor.rows.length + hint.length + GROUND;
  let room = Math.max(0, height - 1 - fixed);
  const take = (lines: readonly Line[], gap: boolean): Line[] => {
    if (lines.length === 0 || room <= 0) return [];
    const fitting = lines.slice(-Math.max(0, room - (gap ? 1 : 0)));
    room -= fitting.length + (gap ? 1 : 0);
    return gap ? [[], ...fitting] : fitting;
  };
  const activity = take(
    parts.activity.map((line) => clip(line, width)),
    true,
  );
  const question = take(
    parts.question.flatMap((line) => chop(line, width)),
    true,
  );
  const underWay = take(parts.underWay, false);
  const above = [...underWay, ...question, ...activity, []].map((line) => toRow(line, looks));
  const below = [...hint, clip(parts.status, width)].map((line) => toRow(line, looks));
  return {
    live: [...above, ...editor.rows, ...below],
    caret: { row: above.length + editor.row, column: editor.column },
  };
}

/** The draft after its prompt. If it is long, only the part around the caret. */
function editorRows(draft: Draft, width: number, most: number, looks: Looks): { rows: Row[]; row: number; column: number } {
  const { rows, row, column } = layOut(draft, Math.max(4, width - PROMPT));
  const from = Math.max(0, Math.min(row - Math.floor(most / 2), rows.length - most));
  const shown = rows.slice(from, from + most).map((each, index): Row => {
    const isFirst = from + index === 0;
    const mark: Line = isFirst ? [{ text: "› ", style: { bold: true, colour: "cyan" } }] : [{ text: "  " }];
    return { text: `${paint(mark, looks)}${each.text}`, width: each.width + PROMPT };
  });
  if (from > 0 && shown.length > 1) shown[0] = toRow([dim(`  … ${from + 1} more lines above`)], looks);
  return { rows: shown, row: row - from, column: column + PROMPT };
}

function toRow(line: Line, looks: Looks): Row {
  return { text: paint(line, looks), width: lineWidth(line) };
}
