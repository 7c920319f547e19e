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
  /\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|ECONNREFUSED|ECONNRESET|ETIMEDOUT)\b|[Cc]ould not resolve (?:host|proxy)|[Tt]emporary failure in name resolution|[Nn]ame or service not known|[Nn]etwork is unreachable|[Cc]onnection refused|failed to (?:download|fetch)|spurious network error|[Uu]nknown host|dial tcp|no such host|Could not (?:transfer|connect)|Max retries exceeded|error sending request|All attempts to connect to \S+ failed|network is not connected|Error when performing the request to http|Network access disabled by the environment/;
const DEPENDENCY =
  /ModuleNotFoundError|No module named|ImportError while|ERR_MODULE_NOT_FOUND|Cannot find (?:module|package) ['"][^./]|Can't resolve ['"][^./]|could not find (?:package|gem|crate)|Bundler::GemNotFound|missing go\.sum entry|no required module provides package|cannot find package|no matching package|Could not resolve dependencies|[Uu]nresolved dependenc|fatal error: [^:\n]*: No such file or directory|Could NOT find|is not in std|Could not find (?:Hex|"?rebar3?"?|an SCM)|errors on dependencies|autoload\.php|is not installed/;
const PROGRAM =
  /(?:command )?not found\s*$|: No such file or directory\s*$|no such (?:sub)?command|[Mm]issing script|^make: .*: No such file|is not recognized as an internal/m;
/** What tools say when they are there in another version than the project asks for. */
const VERSION =
  /This project is configured to use|defines "packageManager"|Refusing to run (?:pnpm|yarn|npm)@|Cannot find matching keyid|ERR_PNPM_(?:UNSUPPORTED_ENGINE|BAD_PM_VERSION)|EBADDEVENGINES|Unsupported engine|requires rustc \d|supports? only Elixir|running go \d[^)\n]{0,40}GOTOOLCHAIN=local|invalid (?:source|target) release|release version \d+ not supported|requires a different Python|compatible \.NET SDK was not found|Your Ruby version is \d/;
const NOT_EXECUTED = new Set([126, 127]);
const MAX_LINE = 200;

/** Why a check that did not pass could not run here; undefined if it did run. */
export function whyCouldNotRun({ ending, exitCode, tail, reachedTests }: CheckEnding): CouldNotRun | undefined {
  if (ending === "not-started") return "missing program";
  if (ending === "deadline") return "timed out";
  if (ending !== "exited" || exitCode === 0 || reachedTests) return undefined;
  if (exitCode !== null && NOT_EXECUTED.has(exitCode)) return "missing program";
  const end = tail.slice(-2_000);
  if (VERSION.test(end)) return "missing program";
  if (NETWORK.test(end)) return "no network";
  if (DEPENDENCY.test(end)) return "missing dependency";
  if (tail.length < 2_000 && PROGRAM.test(end)) return "missing program";
  return undefined;
}

/** The line of the output that says why: the last one that names such a reason, otherwise the last. */
export function lineThatTells(reason: CouldNotRun, tail: string): string | undefined {
  const signs = { "no network": [NETWORK], "missing dependency": [DEPENDENCY], "missing program": [VERSION, PROGRAM] };
  const patterns: readonly RegExp[] = reason in signs ? signs[reason as keyof typeof signs] : [];
  const lines = tail
    .slice(-2_000)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const told = patterns.map((pattern) => lines.findLast((line) => pattern.test(line))).find((line) => line !== undefined);
  return (told ?? lines.at(-1))?.slice(0, MAX_LINE);
}
