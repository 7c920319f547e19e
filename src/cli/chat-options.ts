import { isMode, type Mode } from "../home/mode-words.ts";

/** Which conversation a chat opens; by default that of the current project. */
export interface ChatOptions {
  /** The conversation with this name, which may be new. */
  conversation?: string;
  /** The conversation that was used last here. */
  continue?: boolean;
  /** The existing conversation with this name; `true` lets the person choose. */
  resume?: string | true;
  /** The mode to set for the conversation. */
  mode?: Mode;
}

/** Parses the options of a chat; undefined for any other command line, or one that names two conversations. */
export function chatOptionsIn(args: readonly string[]): ChatOptions | undefined {
  const words = args.flatMap((arg) => (/^--(?:conversation|resume|mode)=./.test(arg) ? splitAtSign(arg) : [arg]));
  const at = words.indexOf("--mode");
  if (at >= 0) {
    const mode = words[at + 1] ?? "";
    const rest = chatOptionsIn(words.toSpliced(at, 2));
    return rest && rest.mode === undefined && isMode(mode) ? { ...rest, mode } : undefined;
  }
  const [first, second, ...more] = words;
  const isName = second !== undefined && !second.startsWith("-");
  if (first === undefined) return {};
  if (more.length > 0) return undefined;
  if ((first === "-c" || first === "--continue") && second === undefined) return { continue: true };
  if (first === "--conversation" && isName) return { conversation: second };
  if (first === "--resume" && (second === undefined || isName)) return { resume: second ?? true };
  return undefined;
}

function splitAtSign(arg: string): string[] {
  const at = arg.indexOf("=");
  return [arg.slice(0, at), arg.slice(at + 1)];
}
