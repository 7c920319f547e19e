import { isAbsolute } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { usageError } from "../lib/errors.ts";
import { withoutEnd } from "../lib/trim.ts";

const HELP = "Give an https or ssh address such as https://github.com/owner/repo, git@host:owner/repo.git or owner/repo";

/** Where a skill is cloned from: the address for git, and the one that is recorded. */
export interface Origin {
  address: string;
  shown: string;
  /** The repository's own name, for a skill that states none. */
  name: string;
}

/** Checks an address before git ever sees it. `local` allows a folder of this machine. */
export function parseOrigin(typed: string, { local }: { local: boolean }): Origin {
  const text = typed.trim();
  if (text === "") throw usageError(`A skill needs the address of its repository. ${HELP}.`);
  if (/[\s\p{Cc}]/u.test(text) || text.startsWith("-") || text.includes("::") || text.length > 2_000) throw refused(text);
  if (/^[A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*$/.test(text)) return origin(`https://github.com/${text}`);
  if (/^[A-Za-z0-9][\w.-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[\w~/][\w./~+-]*$/.test(text)) return origin(text);
  if (isAbsolute(text) || /^file:\/\//i.test(text)) return localOrigin(text, local);
  if (/^(?:https|ssh):\/\//i.test(text)) return remoteOrigin(text);
  throw refused(text);
}

function remoteOrigin(text: string): Origin {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || url.hostname === "" || url.hostname.startsWith("-") || url.username.startsWith("-")) throw refused(text);
  if (url.password !== "" || (url.protocol === "https:" && url.username !== "")) {
    throw usageError(
      "The address holds a password or token. Leave it out; for a private repository use its ssh address, and let ssh prove who you are.",
    );
  }
  return origin(text);
}

function localOrigin(text: string, allowed: boolean): Origin {
  if (!allowed) {
    throw usageError(`A folder of this machine can only be installed by a person: io skill add ${text}`);
  }
  try {
    const path = isAbsolute(text) ? text : fileURLToPath(text);
    return { ...origin(text), address: pathToFileURL(path).href };
  } catch {
    // A file: address that names no local path.
    throw refused(text);
  }
}

function origin(text: string): Origin {
  const name = withoutEnd(text, "/\\")
    .replace(/\.git$/, "")
    .split(/[/\\:]/)
    .at(-1);
  return { address: text, shown: text, name: name || "skill" };
}

function refused(text: string) {
  return usageError(`"${text.slice(0, 200)}" is not an address a skill can be cloned from. ${HELP}.`);
}
