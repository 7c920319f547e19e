import { basename, resolve } from "node:path";
import { z } from "zod";
import { isWithin } from "../lib/within.ts";
import { readShell } from "../shell/read.ts";
import type { ToolCall } from "../store/tool-calls.ts";

/** One of several repositories that a task works on, where its agent finds it. The first is where commands begin. */
export interface CallPlace {
  projectPath: string;
  path: string;
}

const Arguments = z.looseObject({
  command: z.string().optional(),
  working_dir: z.string().optional(),
  path: z.string().optional(),
  to: z.string().optional(),
});

/** The calls that may have changed something in a repository, or tested it. When in doubt, a call concerns it. */
export function concerning(calls: readonly ToolCall[], place: CallPlace, places: readonly CallPlace[]): ToolCall[] {
  return calls.filter((call) => {
    const { command, path = ".", to } = argumentsOf(call);
    const own = places[0]?.path ?? place.path;
    if (command === undefined) return [path, to ?? path].some((each) => isWithin(place.path, resolve(own, each)));
    const at = folderOf(call, own, places);
    return at === undefined || isWithin(place.path, at) || names(command, place);
  });
}

/** Whether a test was certainly run in a repository: nothing else in its command says another place. */
export function isTestOf(call: ToolCall, place: CallPlace, places: readonly CallPlace[]): boolean {
  const at = folderOf(call, places[0]?.path ?? place.path, places);
  return at !== undefined && isWithin(place.path, at);
}

/** Whether a command names a worktree: by its whole path, or from another one beside it. */
const names = (command: string, { path }: CallPlace) => command.includes(path) || command.includes(`../${basename(path)}`);

/** An option whose value leads out of the folder, as in `make -C /elsewhere test`. */
const ELSEWHERE = /\s(?:-C|--[\w-]{1,40})[\s=]["']?(?:\/|\.\.|[~$`])/;

/**
 * The folder in which a command does its work: where it is started, or where its first words lead, as in `cd there && make test`.
 * Undefined where it goes to several.
 */
function folderOf(call: ToolCall, own: string, places: readonly CallPlace[]): string | undefined {
  const { command = "", working_dir = "." } = argumentsOf(call);
  const start = resolve(own, working_dir);
  const [first, second] = readShell(command);
  const [name, to, ...more] = first?.pipe.length === 1 && first.pipe[0] ? first.pipe[0].words.map(({ text }) => text) : [];
  const leads =
    name === "cd" && to !== undefined && !/[$`~*?-]/.test(to[0] ?? "-") && more.length === 0 && second?.before === "&&";
  const rest = leads ? command.slice(command.indexOf("&&") + 2) : command;
  if (/(?:^|[\s;&|(){}])(?:cd|pushd|popd)(?=[\s;&|)]|$)/.test(rest) || ELSEWHERE.test(rest)) return undefined;
  const at = leads ? resolve(start, to) : start;
  const namesAnother = places.some((place) => names(rest, place) && !isWithin(place.path, at));
  return namesAnother ? undefined : at;
}

/** The journal shortens long arguments, which are then no longer JSON. */
function argumentsOf({ args, tool }: ToolCall): z.infer<typeof Arguments> {
  try {
    return Arguments.parse(JSON.parse(args));
  } catch {
    // Shortened: what is left of it may name any place.
    return tool === "shell" ? { command: `cd; ${args}` } : {};
  }
}
