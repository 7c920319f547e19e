/** A tool result without the markers around text written by others. Markers that do not match each other are kept. */
export function unmarked(text: string): string {
  return text.replace(/^--- data ([0-9a-f]{12})\n([\s\S]*?)\n--- end \1$/gm, "$2");
}
