/** Sanitises a file name: no path, no invisible characters, no leading dot, bounded length. */
export function safeName(name: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? "";
  const plain = last
    .normalize("NFC")
    .replace(/[^\p{L}\p{N}\p{M}._() -]/gu, "_")
    .replace(/\s+/g, " ")
    .replace(/^[.\s-]+/, "")
    .trim();
  const dot = plain.lastIndexOf(".");
  const ending = dot > 0 ? plain.slice(dot).slice(0, 16) : "";
  const stem = dot > 0 ? plain.slice(0, dot) : plain;
  let short = "";
  for (const letter of stem) if (Buffer.byteLength(short + letter) <= 120) short += letter;
  return `${short.trim() || "file"}${ending}`;
}
