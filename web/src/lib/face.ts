export const HUES = 12;

/** The features of a portrait; the same name always gives the same ones. */
export interface Face {
  hue: number;
  eyes: number;
  mouth: number;
  top: number;
}

export function faceOf(name: string): Face {
  let hash = 2_166_136_261;
  for (const sign of name.trim().toLowerCase()) hash = Math.imul(hash ^ (sign.codePointAt(0) ?? 0), 16_777_619) >>> 0;
  // The last letters of a name barely affect the upper bits, so all bits are mixed once more.
  hash = Math.imul(hash ^ (hash >>> 15), 2_246_822_519) >>> 0;
  hash = (hash ^ (hash >>> 13)) >>> 0;
  return { hue: hash % HUES, eyes: (hash >>> 8) % 4, mouth: (hash >>> 12) % 4, top: (hash >>> 16) % 5 };
}
