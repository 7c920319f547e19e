/** Stands between what was said before a turn was begun anew, and after. */
export const RULE = "\n\n---\n\n";

/** What of a reply was not told yet to somebody who has heard this much of the turn. */
export function restOf(reply: string, said: string): string {
  if (said.trimEnd().endsWith(reply.trimEnd())) return "";
  return reply.startsWith(said) ? reply.slice(said.length) : `\n\n${reply}`;
}
