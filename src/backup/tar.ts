import { UserError } from "../lib/errors.ts";

/** A file, a link or an empty folder in an archive; names are separated by slashes. */
export interface TarEntry {
  name: string;
  type: keyof typeof KINDS;
  mode: number;
  mtimeMs: number;
  size: number;
  /** A link's target. */
  target?: string;
}

const KINDS = { file: "0", link: "2", folder: "5" } as const;
const BLOCK = 512;
const MOST_EXTRA = 1_000_000;
/** The last second that the old fields can represent. */
const LAST_MS = (2 ** 33 - 1) * 1000;

/** The header of an entry; as in POSIX, a record before it holds what does not fit into the old fields. */
export function headerOf({ name, type, mode, mtimeMs, size, target = "" }: TarEntry): Buffer {
  const time = Math.min(Math.max(0, mtimeMs), LAST_MS);
  const records = [
    ...(fits(name) ? [] : [record("path", name)]),
    ...(fits(target) ? [] : [record("linkpath", target)]),
    ...(size > 0o77777777777 ? [record("size", String(size))] : []),
    // Whole seconds could not order two versions of a page.
    ...(time % 1000 === 0 ? [] : [record("mtime", (time / 1000).toFixed(6))]),
  ];
  const seconds = Math.floor(time / 1000);
  const own = block({ name: short(name), kind: KINDS[type], mode, seconds, size, target: short(target) });
  if (records.length === 0) return own;
  const extra = Buffer.concat(records);
  return Buffer.concat([block({ name: "pax", kind: "x", mode: 0o600, seconds, size: extra.length }), padded(extra), own]);
}

/** Fills an entry up to whole blocks. */
export function paddingOf(size: number): Buffer {
  return Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
}

/** The end of an archive. */
export const END_OF_TAR = Buffer.alloc(2 * BLOCK);

/** Reads an archive entry by entry; each body must be read to its end before the next. */
export async function* readTar(chunks: AsyncIterable<Buffer>): AsyncGenerator<{ entry: TarEntry; body: AsyncIterable<Buffer> }> {
  const source = createReader(chunks);
  for (;;) {
    let head = await source.exactly(BLOCK);
    if (head.every((byte) => byte === 0)) return;
    let extra: Record<string, string> = {};
    verifyChecksum(head);
    if (kindIn(head) === "x") {
      const size = octal(head, 124, 12);
      if (size > MOST_EXTRA) throw damaged();
      extra = recordsIn(await source.exactly(size));
      await source.exactly(paddingOf(size).length);
      head = await source.exactly(BLOCK);
      verifyChecksum(head);
    }
    const type = (Object.keys(KINDS) as TarEntry["type"][]).find((each) => KINDS[each] === kindIn(head));
    if (type === undefined) throw damaged();
    const size = extra.size === undefined ? octal(head, 124, 12) : decimal(extra.size);
    const mtimeMs = extra.mtime === undefined ? octal(head, 136, 12) * 1000 : Number(extra.mtime) * 1000;
    if (!Number.isSafeInteger(size) || size < 0 || (type !== "file" && size > 0) || !(mtimeMs >= 0 && mtimeMs <= LAST_MS))
      throw damaged();
    const entry: TarEntry = {
      name: extra.path ?? text(head, 0, 100),
      type,
      mode: octal(head, 100, 8) & 0o777,
      mtimeMs,
      size,
      ...(type === "link" && { target: extra.linkpath ?? text(head, 157, 100) }),
    };
    yield { entry, body: source.some(size) };
    await source.exactly(paddingOf(size).length);
  }
}

export function damaged(): UserError {
  return new UserError("It is cut short, was changed, or is no backup of IO's. Nothing was restored.");
}

function createReader(chunks: AsyncIterable<Buffer>) {
  const iterator = chunks[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);
  async function take(most: number): Promise<Buffer> {
    if (held.length === 0) {
      const { value, done } = await iterator.next();
      if (done) throw damaged();
      held = value;
    }
    const part = held.subarray(0, most);
    held = held.subarray(part.length);
    return part;
  }
  async function* some(size: number): AsyncGenerator<Buffer> {
    for (let left = size; left > 0; ) {
      const part = await take(left);
      left -= part.length;
      yield part;
    }
  }
  return {
    some,
    async exactly(size: number): Promise<Buffer> {
      const parts: Buffer[] = [];
      for await (const part of some(size)) parts.push(part);
      return Buffer.concat(parts);
    },
  };
}

interface Block {
  name: string;
  kind: string;
  mode: number;
  seconds: number;
  size: number;
  target?: string;
}

function block({ name, kind, mode, seconds, size, target = "" }: Block): Buffer {
  const head = Buffer.alloc(BLOCK);
  const number = (value: number, at: number, width: number) => head.write(`${value.toString(8).padStart(width - 1, "0")}\0`, at);
  head.write(name, 0);
  number(mode & 0o777, 100, 8);
  number(0, 108, 8);
  number(0, 116, 8);
  number(Math.min(size, 0o77777777777), 124, 12);
  number(seconds, 136, 12);
  head.write(" ".repeat(8), 148);
  head.write(kind, 156);
  head.write(target, 157);
  head.write("ustar\x0000", 257);
  number(
    head.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  );
  return head;
}

/** A record's length includes itself. */
function record(key: string, value: string): Buffer {
  const rest = ` ${key}=${value}\n`;
  const bytes = Buffer.byteLength(rest);
  let length = bytes + String(bytes).length;
  if (String(length).length !== String(bytes).length) length = bytes + String(length).length;
  return Buffer.from(`${length}${rest}`);
}

function recordsIn(extra: Buffer): Record<string, string> {
  const found: Record<string, string> = {};
  for (let at = 0; at < extra.length; ) {
    const length = Number.parseInt(extra.toString("utf8", at, at + 10), 10);
    if (!(length > 0)) throw damaged();
    const line = extra.toString("utf8", at, at + length);
    const parts = /^\d+ ([a-z]+)=([\s\S]*)\n$/.exec(line);
    if (!parts) throw damaged();
    found[parts[1]!] = parts[2]!;
    at += length;
  }
  return found;
}

const fits = (name: string) => Buffer.byteLength(name) <= 100 && /^[\x20-\x7e]*$/.test(name);
const short = (name: string) => (fits(name) ? name : "long-name");
const padded = (bytes: Buffer) => Buffer.concat([bytes, paddingOf(bytes.length)]);
const kindIn = (head: Buffer) => (head[156] === 0 ? "0" : String.fromCharCode(head[156] ?? 0));
const text = (head: Buffer, at: number, width: number) => head.toString("utf8", at, at + width).split("\0", 1)[0]!;

function octal(head: Buffer, at: number, width: number): number {
  const value = Number.parseInt(text(head, at, width).trim() || "0", 8);
  if (!(value >= 0)) throw damaged();
  return value;
}

function decimal(text: string): number {
  if (!/^\d{1,16}$/.test(text)) throw damaged();
  return Number(text);
}

function verifyChecksum(head: Buffer): void {
  const sum = octal(head, 148, 8);
  const copy = Buffer.from(head);
  copy.write(" ".repeat(8), 148);
  if (copy.reduce((total, byte) => total + byte, 0) !== sum) throw damaged();
}
