/** Why a check came to no verdict of its own. */
export const REASONS = [
  "missing program",
  "missing dependency",
  "no network",
  "timed out",
  "crashed before the first test",
] as const;
export type CouldNotRun = (typeof REASONS)[number];

export interface CheckEnding {
  ending: "exited" | "deadline" | "aborted" | "not-started";
  exitCode: number | null;
  /** The end of its output. */
  tail: string;
  /** Whether any test was reached. */
  reachedTests: boolean;
}

const NETWORK =
  /\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|ECONNREFUSED|ECONNRESET|ETIMEDOUT)\b|[Cc]ould not resolve (?:host|proxy)|[Tt]emporary failure in name resolution|[Nn]ame or service not known|[Nn]etwork is unreachable|[Cc]onnection refused|failed to (?:download|fetch)|spurious network error|[Uu]nknown host|dial tcp|no such host|Could not (?:transfer|connect)|Max retries exceeded|error sending request|All attempts to connect to \S+ failed|network is not connected/;
const DEPENDENCY =
  /ModuleNotFoundError|No module named|ImportError while|ERR_MODULE_NOT_FOUND|Cannot find (?:module|package) ['"][^./]|Can't resolve ['"][^./]|could not find (?:package|gem|crate)|Bundler::GemNotFound|missing go\.sum entry|no required module provides package|cannot find package|no matching package|Could not resolve dependencies|[Uu]nresolved dependenc|fatal error: [^:\n]*: No such file or directory|Could NOT find|is not in std|autoload\.php|is not installed/;
const PROGRAM =
  /(?:command )?not found\s*$|: No such file or directory\s*$|no such (?:sub)?command|[Mm]issing script|^make: .*: No such file|is not recognized as an internal/m;
const NOT_EXECUTED = new Set([126, 127]);

/** Why a check that did not pass could not run here; undefined if it did run. */
export function whyCouldNotRun({ ending, exitCode, tail, reachedTests }: CheckEnding): CouldNotRun | undefined {
  if (ending === "not-started") return "missing program";
  if (ending === "deadline") return "timed out";
  if (ending !== "exited" || exitCode === 0 || reachedTests) return undefined;
  if (exitCode !== null && NOT_EXECUTED.has(exitCode)) return "missing program";
  const end = tail.slice(-2_000);
  if (NETWORK.test(end)) return "no network";
  if (DEPENDENCY.test(end)) return "missing dependency";
  if (tail.length < 2_000 && PROGRAM.test(end)) return "missing program";
  return undefined;
}
