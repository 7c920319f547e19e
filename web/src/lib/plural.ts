/** A count with its noun, such as `1 call` or `3 calls`. */
export const plural = (count: number, noun: string): string => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
