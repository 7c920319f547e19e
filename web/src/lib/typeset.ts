import temml from "temml";
import type { Typeset } from "./maths.ts";

/** A node of the library's output, before it becomes text. */
interface Part {
  style?: Record<string, string>;
  children?: Part[];
  toMarkup(): string;
}

/**
 * Converts TeX to MathML, which browsers render themselves, without fonts or styles to load. Commands that link or load are
 * refused.
 */
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
    // Invalid TeX is shown as source.
    return undefined;
  }
};

/** Removes inline styles, which the page does not allow. */
function withoutStyles(part: Part): Part {
  if (part.style) part.style = {};
  for (const child of part.children ?? []) withoutStyles(child);
  return part;
}
