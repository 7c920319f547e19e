import { isMode, type Mode } from "../home/mode-words.ts";

/** Which conversation a chat opens; without any of these, that of the project one stands in. */
export interface ChatOptions {
  /** The conversation of this name; it may be a new one. */
  conversation?: string;
  /** The one that was used last here. */
  continue?: boolean;
  /** The one of this name, which must be there; `true` lets the person choose. */
  resume?: string | true;
  /** The mode that the conversation is given. */
  mode?: Mode;
}

/** The options of a chat; undefined for a command line that is anything else, or asks for two conversations. */
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
