import { deflateSync } from "node:zlib";
import type { ChatRequest } from "../../src/engine/rehearsal/wire.ts";

/** A small picture of a single colour, which differs for each seed. */
export function png(seed = 0, side = 4): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const framed = Buffer.alloc(body.length + 8);
    framed.writeUInt32BE(data.length, 0);
    body.copy(framed, 4);
    framed.writeUInt32BE(crc(body), body.length + 4);
    return framed;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(side, 0);
  head.writeUInt32BE(side, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const line = Buffer.concat([
    Buffer.from([0]),
    Buffer.alloc(side * 3, Buffer.from([seed & 255, (seed >> 8) & 255, 200 - (seed % 200)])),
  ]);
  const pixels = deflateSync(Buffer.concat(Array.from({ length: side }, () => line)));
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    ...[chunk("IHDR", head), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))],
  ]);
}

function crc(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit += 1) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
  }
  return (value ^ 0xffffffff) >>> 0;
}

/** The pictures in a request to a model, as bytes, in order. */
export function picturesIn(request: ChatRequest | undefined): Buffer[] {
  const parts = (request?.messages ?? []).flatMap(({ content }) => (Array.isArray(content) ? content : []));
  return parts.flatMap((part) => {
    const { url = "" } = (part.image_url ?? {}) as { url?: string };
    return url ? [Buffer.from(url.slice(url.indexOf(",") + 1), "base64")] : [];
  });
}
