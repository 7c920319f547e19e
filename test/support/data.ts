/** A result of a tool without the marks that set apart what others wrote. Marks that do not fit together stay. */
export function unmarked(text: string): string {
  return text.replace(/^--- data ([0-9a-f]{12})\n([\s\S]*?)\n--- end \1$/gm, "$2");
}
