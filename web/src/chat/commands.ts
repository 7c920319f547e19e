import { expandCommand, type OwnCommand } from "../../../src/home/own-command.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import { at, post } from "../lib/api.ts";
import { freshName } from "../lib/fresh-name.ts";
import type { useRouter } from "../lib/router.ts";

export type { OwnCommand };

/** A command that the page itself handles. */
export interface PageCommand {
  name: string;
  description: string;
}

/** The commands that work as in the terminal. Anything else after a slash is a user's command or plain text. */
export const PAGE_COMMANDS: readonly PageCommand[] = [
  { name: "new", description: "Begin another conversation" },
  { name: "compact", description: "Empty the model's window but for a short record" },
  { name: "clear", description: "Have the model begin anew; what was said stays here" },
  { name: "cancel", description: "End the turn that runs" },
];

export interface CommandPlace {
  conversation: string;
  running: Message | undefined;
  router: ReturnType<typeof useRouter>;
  readOwn: () => Promise<OwnCommand[]>;
  stop: () => Promise<void>;
}

/** Runs a command, or returns the text to send. */
export async function runCommand(line: string, place: CommandPlace): Promise<{ text?: string; says?: string }> {
  const [, name = "", rest = ""] = /^\/([a-z0-9_-]+)\s*([\s\S]*)$/i.exec(line) ?? [];
  const talk = at("conversations", place.conversation);
  switch (name.toLowerCase()) {
    case "new":
      await place.router.push(`/chat/${freshName([place.conversation])}`);
      return {};
    case "compact":
      await post(`${talk}/compact`);
      return { says: "The next message begins with a short record of what was said." };
    case "clear":
      await post(`${talk}/clear`);
      return { says: "The next message begins anew." };
    case "cancel":
      await place.stop();
      return {};
  }
  const own = (await place.readOwn()).find((each) => each.name === name.toLowerCase());
  return { text: own ? expandCommand(own, rest.trim()) : line };
}
