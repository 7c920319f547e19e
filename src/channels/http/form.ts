/** Far more parts than one file needs, and few enough to parse quickly. */
const MOST_PARTS = 20;
const LONGEST_HEAD = 8_000;

/**
 * Whether a form has no more and no longer headers than a form with one file. Parsing ten megabytes of empty parts or header
 * lines takes many seconds.
 */
export function isModestForm(type: string, bytes: Buffer): boolean {
  const boundary = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(type);
  const mark = `--${boundary?.[1] ?? boundary?.[2] ?? ""}`;
  if (mark === "--") return false;
  let start = bytes.subarray(0, mark.length).toString("latin1") === mark ? mark.length : nextPart(bytes, mark, 0);
  for (let parts = 0; start >= 0; parts += 1) {
    if (parts > MOST_PARTS) return false;
    const isLast = bytes.subarray(start, start + 2).toString("latin1") === "--";
    const head = bytes.subarray(start, start + LONGEST_HEAD);
    if (!isLast && !head.includes("\r\n\r\n")) return false;
    start = nextPart(bytes, mark, start);
  }
  return true;
}

function nextPart(bytes: Buffer, mark: string, from: number): number {
  const at = bytes.indexOf(`\r\n${mark}`, from, "latin1");
  return at < 0 ? -1 : at + mark.length + 2;
}
