/** Makes foreign text safe for a terminal: removes what could move the cursor, hide a line or reverse the direction. */
export function terminalSafe(text: string): string {
  return text.replaceAll("\r", "").replace(/[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "�");
}
