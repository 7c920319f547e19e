/** A count with its noun: `1 call`, `3 calls`. */
export const plural = (count: number, noun: string): string => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
