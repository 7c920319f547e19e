/** The image types that vision models accept. */
export type PictureType = "image/png" | "image/jpeg" | "image/gif" | "image/webp";

/** The largest image that every provider accepts: some refuse more than 5 MB of base64. */
export const MAX_PICTURE_BYTES = 3_750_000;

/** Detects an image by its first bytes, ignoring its name; undefined if it is not an image. */
export function pictureTypeOf(bytes: Uint8Array): PictureType | undefined {
  const begins = (...wanted: number[]) => wanted.every((byte, at) => bytes[at] === byte);
  const ascii = (from: number, to: number) => String.fromCharCode(...bytes.subarray(from, to));
  if (begins(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)) return "image/png";
  if (begins(0xff, 0xd8, 0xff)) return "image/jpeg";
  if (ascii(0, 6) === "GIF87a" || ascii(0, 6) === "GIF89a") return "image/gif";
  if (ascii(0, 4) === "RIFF" && ascii(8, 12) === "WEBP") return "image/webp";
  return undefined;
}

/** The media type of any file: image, PDF, text (HTML and SVG count as text), or bytes. */
export function fileTypeOf(bytes: Uint8Array): string {
  const picture = pictureTypeOf(bytes);
  if (picture) return picture;
  if (String.fromCharCode(...bytes.subarray(0, 5)) === "%PDF-") return "application/pdf";
  return isText(bytes) ? "text/plain" : "application/octet-stream";
}

function isText(bytes: Uint8Array): boolean {
  if (bytes.includes(0)) return false;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}
