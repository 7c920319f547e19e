import { basename } from "node:path";
import { isAssignment } from "./syntax.ts";

/** One word of a command; undefined if it is known only at run time. */
export type KnownWord = string | undefined;

interface Wrapper {
  /** Its short options that take the next word as their value. */
  valued: string;
  /** How many operands of its own precede the program. */
  operands?: number;
  /** Whether it ends with an exit code of its own instead of the program's. */
  hidesCode?: boolean;
}

/** Programs that run the program named after them. */
const WRAPPERS = new Map<string, Wrapper>([
  ["sudo", { valued: "CDghpRrTtUu" }],
  ["doas", { valued: "Cu" }],
  ["env", { valued: "Cu" }],
  ["nice", { valued: "n" }],
  ["ionice", { valued: "cn" }],
  ["stdbuf", { valued: "eio" }],
  ["timeout", { valued: "ks", operands: 1 }],
  ["xargs", { valued: "adEILnPs", hidesCode: true }],
  ["time", { valued: "fo" }],
  ["exec", { valued: "a" }],
  ["command", { valued: "" }],
  ["nohup", { valued: "" }],
  ["setsid", { valued: "", hidesCode: true }],
  ["builtin", { valued: "" }],
  ["busybox", { valued: "" }],
]);
const LONG_VALUED =
  /^--(user|group|host|prompt|chdir|chroot|role|type|close-from|command-timeout|other-user|unset|adjustment|class|classdata|input|output|error|kill-after|signal|arg-file|delimiter|max-args|max-lines|max-procs|max-chars|format)$/;
const SHELLS = new Set(["sh", "bash", "dash", "zsh", "ksh", "ash"]);
const VALUED_BY_SHELL = /^(?:[-+]\w*[oO]|--rcfile|--init-file)$/;

export const isShell = (program: string) => SHELLS.has(program);

/**
 * The words from the actual program on, without assignments and wrappers. `keepingCode` stops at wrappers that hide the exit
 * code.
 */
export function unwrap<W extends KnownWord>(words: readonly W[], { keepingCode = false } = {}): readonly W[] {
  let at = 0;
  for (;;) {
    const first = words[at];
    if (first === undefined) break;
    const wrapper = WRAPPERS.get(basename(first));
    if (isAssignment(first)) at += 1;
    else if (wrapper && !(keepingCode && wrapper.hidesCode)) {
      at += 1;
      while (words[at]?.startsWith("-")) at += takesNext(words[at]!, wrapper.valued) ? 2 : 1;
      at += wrapper.operands ?? 0;
    } else break;
  }
  return at === 0 ? words : words.slice(at);
}

/** Whether an option's value is the next word: `-u root`, but not `-uroot` or `--user=root`. */
function takesNext(option: string, valued: string): boolean {
  if (option.startsWith("--")) return LONG_VALUED.test(option);
  const first = [...option.slice(1)].findIndex((letter) => valued.includes(letter));
  return first >= 0 && first === option.length - 2;
}

/** The script that a shell is told to run, by `eval`, by `-c` or by its input. The words begin with the program. */
export function scriptOf([first, ...args]: readonly KnownWord[], input: string): string | undefined {
  const program = basename(first ?? "");
  if (program === "eval") return args.map((arg) => arg ?? "").join(" ");
  if (!isShell(program)) return undefined;
  const operand = args.findIndex(
    (arg, index) => arg !== undefined && !/^[-+]/.test(arg) && !VALUED_BY_SHELL.test(args[index - 1] ?? ""),
  );
  const options = operand < 0 ? args : args.slice(0, operand);
  if (options.some((arg) => /^-\w*$/.test(arg ?? "") && arg?.includes("c"))) return args[operand] ?? "";
  return operand < 0 && input !== "" ? input : undefined;
}
