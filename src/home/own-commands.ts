import { join } from "node:path";
import { codeOf } from "../lib/errors.ts";
import { openBelow } from "../lib/pinned/folder.ts";
import { entriesOf } from "../lib/pinned/list.ts";
import { readPlain } from "../lib/pinned/read.ts";
import type { OwnCommand } from "./own-command.ts";

export interface OwnCommandsDeps {
  /** The data folder. */
  home: string;
  /** The conversation's project. */
  project: string | null;
}

const FILE = /^([a-z][a-z0-9_-]{0,40})\.md$/i;
const MAX_BYTES = 100_000;
const MAX_FILES = 200;

/** The commands of the project and the user, read from disk each time. A project's command overrides the user's. */
export function ownCommands({ home, project }: OwnCommandsDeps): OwnCommand[] {
  const sources = [
    ...(project === null ? [] : [{ top: project, below: ".io/commands", shown: ".io/commands" }]),
    { top: home, below: "commands", shown: join(home, "commands") },
  ];
  const found = new Map<string, OwnCommand>();
  for (const { top, below, shown } of sources)
    for (const command of commandsIn(top, below, shown)) if (!found.has(command.name)) found.set(command.name, command);
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function commandsIn(top: string, below: string, shown: string): OwnCommand[] {
  const folder = openBelow(top, below);
  if (folder === undefined) return [];
  try {
    return entriesOf(folder)
      .filter((entry) => entry.isFile() && FILE.test(entry.name))
      .slice(0, MAX_FILES)
      .flatMap(({ name }) => {
        const read = readPlain(folder, name, MAX_BYTES);
        if (!("bytes" in read)) return [];
        const { description, text } = parseCommand(read.bytes.toString("utf8"));
        return [{ name: FILE.exec(name)![1]!.toLowerCase(), description, source: `${shown}/${name}`, text }];
      });
  } catch (error) {
    // It vanished while it was read, or is unreadable.
    if (codeOf(error) === undefined) throw error;
    return [];
  } finally {
    folder.close();
  }
}

/** Splits front matter (the description) from the body. */
function parseCommand(file: string): { description: string; text: string } {
  const lines = file.replace(/\r\n?/g, "\n").split("\n");
  const end = lines[0] === "---" ? lines.indexOf("---", 1) : -1;
  if (end < 0) return { description: "", text: file };
  const line = lines.slice(1, end).find((each) => each.startsWith("description:")) ?? "";
  const description = line.slice("description:".length).trim();
  const isQuoted = ['"', "'"].some(
    (sign) => description.length > 1 && description.startsWith(sign) && description.endsWith(sign),
  );
  return { description: isQuoted ? description.slice(1, -1) : description, text: lines.slice(end + 1).join("\n") };
}
