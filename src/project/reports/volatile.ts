/** What stands in a name for a part that changes with each run. */
const ANY = "\u2026";
/** The longest name that is searched, since these are compared by the thousand. */
const LONGEST = 400;

/** Parts of names that runners and test data fill in anew each time: times, temporary folders, ports, addresses, random ids. */
const VOLATILE: readonly RegExp[] = [
  /\b\d{4}-\d\d-\d\d(?:[T_ ]\d\d[:.-]?\d\d(?:[:.-]?\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?/g,
  /(?:\/private)?\/(?:tmp|var\/tmp|var\/folders|run\/user\/\d+)\/[\w.@+/-]+/g,
  /\bpytest-of-[\w.-]+(?:\/[\w.-]+)*/g,
  /\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gi,
  /\b0x[0-9a-f]{4,16}\b/gi,
  /\b(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):\d{2,5}\b/g,
  /\b\d{1,9}(?:\.\d{1,9})? ?(?:ns|µs|us|ms|s|seconds)\b/g,
  /\b\d{5,20}(?:\.\d{1,9})?\b/g,
];

/** What may be a random id or a hash: one has digits and letters, else it is a word or a number. */
const HEX = /\b[0-9a-f]{8,64}\b/gi;
const isHash = (text: string) => /\d/.test(text) && /[a-f]/i.test(text);

/** A name without the parts that may change from run to run. Different tests may come to the same, so compare with care. */
export function withoutVolatile(name: string): string {
  if (name.length > LONGEST) return name;
  const unhashed = (text: string) => text.replace(HEX, (found) => (isHash(found) ? ANY : found));
  return unhashed(VOLATILE.reduce((text, part) => text.replace(part, ANY), name));
}
