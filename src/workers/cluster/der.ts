/** The few DER types that a certificate needs. */
const tagged = (tag: number, ...parts: Buffer[]): Buffer => {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content), content]);
};

export const sequence = (...parts: Buffer[]): Buffer => tagged(0x30, ...parts);
export const set = (...parts: Buffer[]): Buffer => tagged(0x31, ...parts);
export const octets = (content: Buffer): Buffer => tagged(0x04, content);
export const bits = (content: Buffer, unused = 0): Buffer => tagged(0x03, Buffer.from([unused]), content);
export const utf8 = (text: string): Buffer => tagged(0x0c, Buffer.from(text));
export const yes = (): Buffer => tagged(0x01, Buffer.from([0xff]));
/** A field by its number: with nested types, or with bare bytes. */
export const field = (number: number, content: Buffer): Buffer => tagged(0xa0 + number, content);
export const bareField = (number: number, content: Buffer): Buffer => tagged(0x80 + number, content);

/** A non-negative number, given as its bytes. */
export function integer(bytes: Buffer): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const shortest = first < 0 ? Buffer.from([0]) : bytes.subarray(first);
  return tagged(0x02, (shortest[0] ?? 0) < 0x80 ? shortest : Buffer.concat([Buffer.from([0]), shortest]));
}

export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** To the second, in UTC; the standard wants two-digit years before 2050. */
export function time(date: Date): Buffer {
  const digits = date
    .toISOString()
    .replace(/\.\d+Z$/, "Z")
    .replace(/[-:T]/g, "");
  const isShort = date.getUTCFullYear() < 2050;
  return tagged(isShort ? 0x17 : 0x18, Buffer.from(isShort ? digits.slice(2) : digits));
}

function base128(value: number): number[] {
  const digits = [value & 0x7f];
  for (let rest = value >> 7; rest > 0; rest >>= 7) digits.unshift((rest & 0x7f) | 0x80);
  return digits;
}

function lengthOf({ length }: Buffer): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  return length < 0x100 ? Buffer.from([0x81, length]) : Buffer.from([0x82, length >> 8, length & 0xff]);
}
