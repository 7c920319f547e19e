export function measurePace(tries: number, pick?: "middle" | "best"): number;
