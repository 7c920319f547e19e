/**
 * Formats a time the way people say it: without the day if it is today. Does not use the locale, which browsers load slowly.
 */
export function when(iso: string | null, now = new Date()): string {
  if (iso === null) return "";
  const time = new Date(iso);
  const clock = time.toTimeString().slice(0, 5);
  if (time.toDateString() === now.toDateString()) return clock;
  return `${dayOf(time)}, ${clock}`;
}

/** Formats a past time for a list: minutes ago, then the time, and the day of what is older. */
export function ago(iso: string, now: number): string {
  const age = now - Date.parse(iso);
  if (age >= 0 && age < 60_000) return "just now";
  if (age >= 0 && age < 3_600_000) return `${Math.floor(age / 60_000)} min ago`;
  const [time, today] = [new Date(iso), new Date(now)];
  const days = daysBetween(time, today);
  const clock = time.toTimeString().slice(0, 5);
  if (days <= 0) return when(iso, today);
  if (days < 7) return `${time.toDateString().slice(0, 3)}, ${clock}`;
  return `${dayOf(time)}${time.getFullYear() === today.getFullYear() ? "" : ` ${time.getFullYear()}`}`;
}

/** Formats a day as "Nov 3". */
export function dayOf(time: Date): string {
  const [, month, day] = time.toDateString().split(" ");
  return `${month} ${Number(day)}`;
}

/** Formats a day of the calendar, such as "2026-11-03", as "Nov 3". Other names stay as they are. */
export const dayName = (name: string): string => (/^\d{4}-\d\d-\d\d$/.test(name) ? dayOf(new Date(`${name}T12:00`)) : name);

/** The number of calendar days between two times. Days of 23 or 25 hours are rounded to whole ones. */
export function daysBetween(from: Date, to: Date): number {
  const midnight = (at: Date) => new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();
  return Math.round((midnight(to) - midnight(from)) / 86_400_000);
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
