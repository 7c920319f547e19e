import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./home.ts";

/** Returns numbers from 0 up to 1, the same ones for the same seed. */
export type Random = () => number;

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const pick = <T>(random: Random, among: readonly T[]): T => among[Math.floor(random() * among.length)]!;
const upTo = (random: Random, most: number) => Math.floor(random() * (most + 1));

/**
 * The lists in shell-fragments.txt. There, `␠` stands for a space, `␤` for a newline, and `⟨1b⟩` for the character with that
 * hex code.
 */
const FRAGMENTS = readFileSync(new URL("shell-fragments.txt", import.meta.url), "utf8");
const fragments = (title: string): string[] =>
  new RegExp(`^## ${title}\\n((?:(?!## ).*\\n)*)`, "m")
    .exec(FRAGMENTS)![1]!
    .split(/\s+/)
    .filter((each) => each !== "")
    .map((each) =>
      each
        .replaceAll("␠", " ")
        .replaceAll("␤", "\n")
        .replace(/⟨([\da-f]+)⟩/g, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16))),
    );

const PROGRAMS = fragments("programs");
const ARGUMENTS = fragments("arguments");
/** Few of these are pipes or `&`, because each of those costs a process. */
const JOINTS = fragments("joints");
const HARMLESS = fragments("harmless");
/** All shell syntax that could start a program or write a file where a reader does not expect it. `x` is the program. */
const ODD = fragments("odd");

/** A simple command, sometimes with unusual syntax in it. */
function command(random: Random): string {
  const words = Array.from({ length: upTo(random, 3) }, () => pick(random, ARGUMENTS));
  if (random() < 0.15) words.splice(upTo(random, words.length), 0, pick(random, HARMLESS));
  if (random() < 0.15) words.splice(upTo(random, words.length), 0, pick(random, ODD));
  return [pick(random, PROGRAMS), ...words].join(pick(random, [" ", " ", " ", "  ", "\t", " \\\n "]));
}

/** A line that is plain or almost plain, because that is where a parser makes mistakes. */
export function shellLine(random: Random): string {
  if (random() < 0.2)
    return Array.from({ length: 1 + upTo(random, 6) }, () =>
      pick(random, random() < 0.5 ? ODD : [...ARGUMENTS, ...PROGRAMS]),
    ).join(pick(random, ["", " "]));
  let line = command(random);
  for (let more = upTo(random, 2); more > 0; more -= 1) line += pick(random, JOINTS) + command(random);
  for (let changes = upTo(random, 2); changes > 0; changes -= 1) {
    const at = upTo(random, line.length);
    const end = random() < 0.3 ? Math.min(line.length, at + 1 + upTo(random, 2)) : at;
    line = line.slice(0, at) + (random() < 0.7 ? pick(random, ODD) : "") + line.slice(end);
  }
  return line;
}

/** Such a line, in which every odd construct would run `command`. */
export function lineThatMayRun(command: string, random: Random): string {
  for (;;) {
    const line = shellLine(random).replace(/(?<![\w./'-])x(?![\w./'=-])/g, command);
    // Loops may never end.
    if (line.includes(command) && !/while|until|select/.test(line)) return line;
  }
}

/** What a shell did with a line: the programs it would have started, and whether it created a file. */
export interface Recorded {
  started: string[][];
  wroteFile: boolean;
}

const SEPARATOR = "\x1e\x1f";
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * Runs lines in a real shell in which every program is a function that only records its arguments. The sandbox has no network,
 * nothing writable but an empty folder, and no program on the PATH.
 */
export async function runLines(
  shell: "bash" | "dash",
  lines: readonly string[],
  names: readonly string[] = PROGRAMS,
  isApart = shell === "dash",
): Promise<Recorded[]> {
  const script = join(temporaryFolder(), "script");
  const isBash = shell === "bash";
  const defined = isBash ? names : names.filter((name) => /^[A-Za-z_]\w*$/.test(name) && name !== "exit");
  // A subshell per line is slower, but it contains whatever the line does: in dash, a syntax error ends the whole shell.
  const [open, close] = isApart ? ["( ulimit -t 2; eval", "wait )"] : ["builtin eval", "builtin wait"];
  writeFileSync(
    script,
    [
      // bash flushes its output after each newline, so newlines are replaced to keep the records of parallel commands apart.
      `record() { command printf '%s\\037' "$line_number" "$${isBash ? "{@//$'\\n'/$'\\035'}" : "@"}" '\x1e' >&9; }`,
      ...defined.map((name) => `${isBash ? `function ${name} {` : `${name}() {`} record ${name} "$@"; }`),
      isBash ? 'command_not_found_handle() { record "$@"; }' : "",
      ...lines.flatMap((line, index) => [
        `line_number=${index}; set -f`,
        `${open} ${quoted(line)} </dev/null >/dev/null 2>&1; ${close}`,
        `set +f; for f in *; do case $f in '*') ;; *) record WROTE; esac; done`,
      ]),
      "line_number=end; record",
    ].join("\n"),
  );
  const child = spawn(
    "bwrap",
    [
      ...["--unshare-all", "--new-session", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin"],
      ...["--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--dev", "/dev"],
      ...["--ro-bind", script, "/script", "--tmpfs", "/work", "--chdir", "/work", "--clearenv"],
      ...["--setenv", "PATH", "/nowhere", "--setenv", "HOME", "~", "--setenv", "LC_ALL", "C.UTF-8"],
      ...[`/usr/bin/${shell}`, ...(isBash ? ["--norc", "--noprofile"] : []), "/script"],
    ],
    // A `kill 0` reaches only the child's own process group.
    { detached: true, stdio: ["ignore", "ignore", "pipe", "ignore", "ignore", "ignore", "ignore", "ignore", "ignore", "pipe"] },
  );
  const [records, errors] = await Promise.all([textOf((child.stdio as unknown[])[9]), textOf(child.stderr!)]);
  const recorded = lines.map((): Recorded => ({ started: [], wroteFile: false }));
  let last = "";
  for (const record of records.split(SEPARATOR).filter((each) => each !== "")) {
    const [number = "", ...words] = record.replaceAll("\x1d", "\n").split("\x1f").slice(0, -1);
    last = number;
    // Records of background commands may arrive late.
    if (words[0] === "WROTE") recorded[Number(number)]!.wroteFile = true;
    else if (number !== "end") recorded[Number(number)]!.started.push(words);
  }
  if (last !== "end") throw new Error(`${shell} ended after ${JSON.stringify(lines[Number(last)])}: ${errors.slice(0, 500)}`);
  return recorded;
}

async function textOf(stream: unknown): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream as AsyncIterable<Buffer>) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}
