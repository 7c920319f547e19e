/** Separates the text before a turn was restarted from the text after. */
export const RULE = "\n\n---\n\n";

/** The part of a reply that somebody who has seen this much of the turn has not seen. */
export function restOf(reply: string, said: string): string {
  if (said.trimEnd().endsWith(reply.trimEnd())) return "";
  return reply.startsWith(said) ? reply.slice(said.length) : `\n\n${reply}`;
}
