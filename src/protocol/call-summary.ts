// The page imports this file too, so it imports nothing.
/** A one-line summary of a call: its command, path or question, from its arguments in the journal. */
export function callSummary(tool: string, args: string): string {
  const given = recordIn(args);
  if (!given) return oneLine(args);
  const text = (name: string) => (typeof given[name] === "string" ? given[name] : "");
  switch (tool) {
    case "shell":
      return oneLine(text("command"));
    case "file_ops":
      return oneLine(`${text("operation")} ${text("query") || text("glob")} ${text("path")}`);
    case "github":
      return oneLine(
        `${text("action")} ${text("repo")} ${given.number === undefined ? text("title") : `#${String(given.number)}`}`,
      );
    default:
      return oneLine(
        Object.values(given)
          .filter((value) => typeof value === "string" || typeof value === "number")
          .map(String)
          .join(" · "),
      );
  }
}

function recordIn(args: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(args);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    // Shortened arguments are not valid JSON.
    return undefined;
  }
}

const oneLine = (text: string) => text.replace(/\s+/g, " ").trim().slice(0, 400);
