import type { Agent } from "../protocol/squads.ts";

/** The one agent that somebody calls by a part of its name: "B.A.", "ba" and "Baracus" all mean B.A. Baracus. */
export function findByName(typed: string, agents: readonly Agent[]): Agent | undefined {
  const wanted = wordsOf(typed);
  if (wanted.length === 0) return undefined;
  const meant = agents.filter(({ characterName }) => {
    const words = wordsOf(characterName);
    return words.some((_, start) => wanted.every((word, index) => words[start + index] === word));
  });
  return meant.length === 1 ? meant[0] : undefined;
}

/** Only letters and digits, so that dots and case do not matter. */
function wordsOf(name: string): string[] {
  return name
    .toLowerCase()
    .split(/\s+/)
    .map((word) => word.replace(/[^\p{L}\p{N}]/gu, ""))
    .filter((word) => word !== "");
}
