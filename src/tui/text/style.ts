import { widthOf } from "./width.ts";

export type Colour = "red" | "green" | "yellow" | "blue" | "magenta" | "cyan";

/** The style of a piece of text. Colours come from the terminal's own palette, so its theme applies. */
export interface Style {
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  strike?: boolean;
  colour?: Colour;
  /** The link's target. */
  link?: string;
}

/** A piece of one line in one style. Its text is already safe to print. */
export interface Span {
  text: string;
  style?: Style;
}
export type Line = readonly Span[];

/** What the terminal can display. */
export interface Looks {
  colour: boolean;
  links: boolean;
}

const CODES = { bold: 1, dim: 2, italic: 3, underline: 4, strike: 9 } as const;
const COLOURS: Record<Colour, number> = { red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36 };

/** Renders a line with the terminal's escape codes. */
export function paint(line: Line, { colour, links }: Looks): string {
  return line
    .map(({ text, style }) => {
      const painted = colour ? withCodes(text, style) : text;
      return links && style?.link ? `\x1b]8;;${style.link}\x1b\\${painted}\x1b]8;;\x1b\\` : painted;
    })
    .join("");
}

function withCodes(text: string, style: Style = {}): string {
  const codes: number[] = [];
  for (const [name, code] of Object.entries(CODES)) if (style[name as keyof typeof CODES]) codes.push(code);
  if (style.colour) codes.push(COLOURS[style.colour]);
  return codes.length === 0 || text === "" ? text : `\x1b[${codes.join(";")}m${text}\x1b[0m`;
}

export const lineWidth = (line: Line): number => line.reduce((sum, { text }) => sum + widthOf(text), 0);
export const lineText = (line: Line): string => line.map(({ text }) => text).join("");

export const plain = (text: string): Line => [{ text }];
export const dim = (text: string): Span => ({ text, style: { dim: true } });
export const bold = (text: string): Span => ({ text, style: { bold: true } });
export const coloured = (text: string, colour: Colour): Span => ({ text, style: { colour } });
