/**
 * Formats a time the way people say it: without the day if it is today. Does not use the locale, which browsers load slowly.
 */
export function when(iso: string | null, now = new Date()): string {
  if (iso === null) return "";
  const time = new Date(iso);
  const clock = time.toTimeString().slice(0, 5);
  if (time.toDateString() === now.toDateString()) return clock;
  const [, month, day] = time.toDateString().split(" ");
  return `${month} ${Number(day)}, ${clock}`;
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min${rest(seconds % 60, "s")}`;
  return `${Math.floor(minutes / 60)} h${rest(minutes % 60, "min")}`;
}
const rest = (value: number, unit: string) => (value === 0 ? "" : ` ${value} ${unit}`);

export const between = (from: string | null, to: string | null, now = Date.now()): string =>
  from === null ? "" : duration((to === null ? now : Date.parse(to)) - Date.parse(from));

/** Formats thousands as 1.2k and millions as 3.4M. */
export function count(value: number): string {
  if (value < 1_000) return String(value);
  if (value < 1_000_000) return `${trim(value / 1_000)}k`;
  return `${trim(value / 1_000_000)}M`;
}
const trim = (value: number) => value.toFixed(value < 100 ? 1 : 0).replace(/\.0$/, "");

export const whole = (value: number): string => value.toLocaleString("en");

/** Formats an amount of money; small amounts get more decimals. */
export const money = (value: number, currency: string): string =>
  value.toLocaleString("en", { style: "currency", currency, maximumFractionDigits: value > 0 && value < 0.01 ? 4 : 2 });

export const tokensOf = ({ inputTokens, outputTokens }: { inputTokens: number; outputTokens: number }): number =>
  inputTokens + outputTokens;

/** The first line of a text, shortened. */
export function firstLine(text: string, most = 120): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return line.length <= most ? line : `${line.slice(0, most)}…`;
}
