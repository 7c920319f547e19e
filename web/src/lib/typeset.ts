import temml from "temml";
import type { Typeset } from "./maths.ts";

/** What the library makes of a formula, before it is text. */
interface Part {
  style?: Record<string, string>;
  children?: Part[];
  toMarkup(): string;
}

/** TeX as MathML, which browsers draw themselves: no fonts and no styles to load. Commands that link or load are refused. */
export const typeset: Typeset = (tex, isBlock) => {
  try {
    const options = {
      displayMode: isBlock,
      throwOnError: true,
      trust: false,
      maxSize: [10, 10] as [number, number],
      maxExpand: 200,
    };
    const tree = temml.__renderToMathMLTree(tex, options) as Part;
    return withoutStyles(tree).toMarkup();
  } catch {
    // What is no TeX is shown as it was written.
    return undefined;
  }
};

/** The page allows no inline style. */
function withoutStyles(part: Part): Part {
  if (part.style) part.style = {};
  for (const child of part.children ?? []) withoutStyles(child);
  return part;
}
