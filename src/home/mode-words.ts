/** How much IO may do without asking, strictest first. The chat loads this before anything else, so it has no imports. */
export const MODES = ["plan", "ask", "auto", "full"] as const;
export type Mode = (typeof MODES)[number];

export const isMode = (word: string): word is Mode => MODES.some((mode) => mode === word);

/** One line that explains a mode. */
export const MODE_WORDS: Readonly<Record<Mode, string>> = {
  plan: "IO reads and answers, and changes nothing",
  ask: "IO asks you before everything that has an effect",
  auto: "IO works in the project unasked, and asks you before anything outside it",
  full: "IO does whatever it is told to, and asks nobody",
};
