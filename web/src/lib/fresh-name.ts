/** A name for a new conversation: the day and the minute, such as `nov18-0912`. */
export function freshName(taken: readonly string[], now = new Date()): string {
  const [, month = "", day = ""] = now.toDateString().toLowerCase().split(" ");
  const name = `${month}${day}-${now.toTimeString().slice(0, 5).replace(":", "")}`;
  let free = name;
  for (let number = 2; taken.includes(free); number += 1) free = `${name}-${number}`;
  return free;
}
