/** Invisible characters, odd spaces, direction marks, and marks without a base letter. */
const UNSEEN = /(?:[^\P{Cc}\n\t]|[\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{DI}\p{Me}\u2800\u{1d159}]|[^\P{Zs} ])+/gu;
/** Combining marks without a letter, or more of them than any script needs. */
const STRAY_MARKS = /(?<![\p{L}\p{N}\p{M}])\p{M}+|(?<=\p{M}{3})\p{M}+/gu;
/** How many different characters in a row are listed. */
const MAX_LISTED = 32;

/** Makes everything in a text visible: invisible characters are spelled out, with a count where they repeat. */
export function visible(text: string): string {
  return text.replace(UNSEEN, spelled).replace(STRAY_MARKS, spelled);
}

function spelled(run: string): string {
  const names: string[] = [];
  let at = 0;
  while (at < run.length && names.length < MAX_LISTED) {
    const code = run.codePointAt(at)!;
    const size = code > 0xffff ? 2 : 1;
    const start = at;
    while (run.codePointAt(at) === code) at += size;
    const name = code < 0x20 ? String.fromCodePoint(0x2400 + code) : `\\u{${code.toString(16)}}`;
    names.push(at - start === size ? name : `${name}×${(at - start) / size}`);
  }
  return names.join("") + (at < run.length ? `… (${run.length - at} more unseen characters)` : "");
}

/** The beginning and end of a long text, with the number of characters left out. */
export function withoutMiddle(text: string, most: number): string {
  return text.length <= most ? text : joinEnds(text, text, most, text.length - most);
}

/** The beginning of one text and the end of another, within a total length. */
export function joinEnds(first: string, last: string, most: number, hidden: number): string {
  const tail = Math.floor(most / 3);
  const head = first.slice(0, most - tail).replace(/[\ud800-\udbff]$/, "");
  const end = last.slice(-tail).replace(/^[\udc00-\udfff]/, "");
  return `${head} … (${hidden} characters not shown) … ${end}`;
}
