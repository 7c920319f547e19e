import { realpathSync } from "node:fs";
import { delimiter, join, relative } from "node:path";
import { packageRoot } from "./package-root.ts";

/** How IO's commands are typed in the current folder. */
export interface Invocation {
  io: string;
  swarm: string;
}

export interface InvocationDeps {
  env: NodeJS.ProcessEnv;
  cwd: string;
  /** The folder that contains `bin`. */
  root?: string;
}

/** `io` if that is on the PATH, else how this process was started: through npx, or Node with the file. */
export function invocationOf({ env, cwd, root = packageRoot }: InvocationDeps): Invocation {
  const how = (name: "io" | "swarm"): string => {
    const file = join(root, "bin", `${name}.js`);
    if (foldersOf(env).some((folder) => isSame(join(folder, name), file))) return name;
    if (env.npm_command === "exec") return `npx ${name}`;
    const near = relative(cwd, file);
    return `node ${quotedForShell(near.startsWith("..") ? file : near)}`;
  };
  return { io: how("io"), swarm: how("swarm") };
}

/** Rewrites commands such as `io stop` in our messages so that they work when pasted. */
export function asTyped(text: string, { io, swarm }: Invocation): string {
  if (io === "io" && swarm === "swarm") return text;
  return text.replace(COMMAND, (name) => (name === "io" ? io : swarm));
}

/** How to get `io` onto the PATH; undefined if it is already there. */
export function howToType({ env, cwd, root = packageRoot }: InvocationDeps): string | undefined {
  if (invocationOf({ env, cwd, root }).io === "io") return undefined;
  const file = quotedForShell(join(root, "bin", "io.js"));
  return `To type io anywhere: (cd ${quotedForShell(root)} && npm link), or for this shell alone: alias io="node ${file}"`;
}

const WORDS =
  "start|stop|restart|status|logs|send|setup|doctor|tour|update|squad|task|conversation|approval|budget|usage|wiki|skill|swarm|web|telegram|service|backup|restore|clean|completion|cluster|worker|run|plan|validate|list|show|resume|cancel";
const COMMAND = new RegExp(
  String.raw`(?<![\w./\\@-])(?:io|swarm)(?! clean\))(?= (?:(?:${WORDS})\b|--(?:help|daemon|version)\b))`,
  "g",
);

/** The PATH of the user's own shell, without the folders that npm adds while it runs. */
function foldersOf(env: NodeJS.ProcessEnv): string[] {
  return (env.PATH ?? "")
    .split(delimiter)
    .filter((folder) => folder !== "" && !/node_modules[\\/]\.bin|[\\/]_npx[\\/]/.test(folder));
}

function isSame(candidate: string, file: string): boolean {
  try {
    return realpathSync(candidate) === realpathSync(file);
  } catch {
    // No such command.
    return false;
  }
}

/** Quotes a word for a shell. */
export function quotedForShell(word: string): string {
  return /^[\w./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
