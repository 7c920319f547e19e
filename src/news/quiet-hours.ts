/** Minutes since midnight of a time such as `07:30`. */
const minutesOf = (time: string) => Number(time.slice(0, 2)) * 60 + Number(time.slice(3, 5));

/** Whether a time is within hours such as `22:00-07:00`, local time, end exclusive. */
export function isQuiet(hours: string | undefined, at: Date): boolean {
  if (hours === undefined) return false;
  const [from, to] = [minutesOf(hours.slice(0, 5)), minutesOf(hours.slice(6))];
  const now = at.getHours() * 60 + at.getMinutes();
  return from < to ? now >= from && now < to : now >= from || now < to;
}

/** The latest occurrence of a local time of day, not after `at`. */
export function lastAt(time: string, at: Date): Date {
  const today = new Date(at);
  today.setHours(Number(time.slice(0, 2)), Number(time.slice(3, 5)), 0, 0);
  if (today > at) today.setDate(today.getDate() - 1);
  return today;
}
