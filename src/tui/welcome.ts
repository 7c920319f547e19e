import { existsSync } from "node:fs";
import { join } from "node:path";
import { engineLine } from "../client/status.ts";
import { MODE_WORDS, type Mode } from "../home/mode-words.ts";
import { howToType } from "../lib/invocation.ts";
import type { Status } from "../protocol/api.ts";

export interface WelcomeDeps {
  status: Status;
  url: string;
  mode: Mode;
  conversation: string;
  /** The project folder of the conversation. */
  folder: string | null;
  env: NodeJS.ProcessEnv;
  /** Whether nothing was ever sent from here. */
  isFirst: boolean;
}

/** The chat's opening lines: which model answers, what it may do, and where; the first time also what to try. */
export function welcomeLines({ status, url, mode, conversation, folder, env, isFirst }: WelcomeDeps): string[] {
  const how = howToType({ env, cwd: process.cwd() });
  return [
    `IO ${status.version}, API at ${url}. ${engineLine(status)}`,
    ...(folder === null ? [] : [`Conversation ${conversation}, in ${folder}`]),
    ...(how === undefined ? [] : [how]),
    ...(mode === status.mode ? [] : [`This conversation is in the mode ${mode}: ${MODE_WORDS[mode]}.`]),
    ...(isFirst ? firstLines(folder, status.engine.kind) : []),
    "Type a message; /help lists commands and keys; Ctrl-C twice leaves, and IO goes on in the background.",
  ];
}

function firstLines(folder: string | null, engine: Status["engine"]["kind"]): string[] {
  const place = "No project here: IO works in a folder of its own. Open io in a project's folder to work on that.";
  return [...(folder === null ? [place] : []), `Try: ${suggestions(folder, engine).join(" · ")}`];
}

/** Three things that can be done here; the rehearsal model knows only its scenes. */
function suggestions(folder: string | null, engine: Status["engine"]["kind"]): string[] {
  if (engine === "rehearsal")
    return ['"Remember that I prefer tabs."', folder === null ? '"Run date"' : '"Form a squad here."', "/help"];
  if (folder === null) return ['"What can you do?"', '"Remember that I prefer tabs."', "/help"];
  return ['"What is this project, and how is it tested?"', `"${mendWhat(folder)}"`, "/diff and /undo after a change"];
}

/** Suggests a first piece of work, on a file that exists. */
function mendWhat(folder: string): string {
  const readme = ["README.md", "README.rst", "README"].find((name) => existsSync(join(folder, name)));
  return readme === undefined ? "What would you mend here first?" : `Look at @${readme} and mend what is wrong.`;
}
