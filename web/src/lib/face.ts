export const HUES = 12;

/** How somebody looks: always the same for the same name. */
export interface Face {
  hue: number;
  eyes: number;
  mouth: number;
  top: number;
}

export function faceOf(name: string): Face {
  let hash = 2_166_136_261;
  for (const sign of name.trim().toLowerCase()) hash = Math.imul(hash ^ (sign.codePointAt(0) ?? 0), 16_777_619) >>> 0;
  // The last letters of a name barely reach the upper bits, so all of them are mixed once more.
  hash = Math.imul(hash ^ (hash >>> 15), 2_246_822_519) >>> 0;
  hash = (hash ^ (hash >>> 13)) >>> 0;
  return { hue: hash % HUES, eyes: (hash >>> 8) % 4, mouth: (hash >>> 12) % 4, top: (hash >>> 16) % 5 };
}
