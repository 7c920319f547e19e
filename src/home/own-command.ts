/** A custom slash command: a message with a name. */
export interface OwnCommand {
  name: string;
  description: string;
  /** The path of its file, as shown. */
  source: string;
  text: string;
}

/** The message of a command. Arguments replace `$ARGUMENTS`, or are appended. */
export function expandCommand({ text }: Pick<OwnCommand, "text">, rest: string): string {
  if (text.includes("$ARGUMENTS")) return text.replaceAll("$ARGUMENTS", () => rest).trim();
  return rest === "" ? text.trim() : `${text.trim()}\n\n${rest}`;
}
