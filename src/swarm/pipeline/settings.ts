import { isAbsolute, normalize } from "node:path";
import { usageError } from "../../lib/errors.ts";

/** The values of the nine environment variables. */
export interface RunSettings {
  verbose: boolean;
  /** The request; words on the command line override `ISSUE_BODY`. */
  issue: string | undefined;
  agentsDir: string;
  /** Somebody set it, so the folder has to exist. */
  agentsDirSet?: boolean;
  docDir: string;
  /** How long a model may be silent. */
  sessionTimeoutMs: number;
  /** How often an empty reply or an error is retried. */
  maxRetries: number;
  summaryFileName: string;
  primaryModel: string | undefined;
  reviewModel: string | undefined;
}

/** The names of the variables. */
export const VARIABLES = {
  verbose: "VERBOSE",
  issue: "ISSUE_BODY",
  agentsDir: "AGENTS_DIR",
  agentsDirSet: "AGENTS_DIR",
  docDir: "DOC_DIR",
  sessionTimeoutMs: "SESSION_TIMEOUT_MS",
  maxRetries: "MAX_RETRIES",
  summaryFileName: "SUMMARY_FILE_NAME",
  primaryModel: "PRIMARY_MODEL",
  reviewModel: "REVIEW_MODEL",
} as const satisfies Record<keyof RunSettings, string>;

/** The variables that a client sends with its request; the issue is part of the request itself. */
export const VARIABLE_NAMES = [
  ...["VERBOSE", "AGENTS_DIR", "DOC_DIR", "SESSION_TIMEOUT_MS", "MAX_RETRIES", "SUMMARY_FILE_NAME"],
  ...["PRIMARY_MODEL", "REVIEW_MODEL"],
] as const;

/** Only what the environment really says; a resumed run keeps its other settings. */
export function settingsIn(env: NodeJS.ProcessEnv): Partial<RunSettings> {
  const all = Object.entries(readRunSettings(env)) as [keyof RunSettings, unknown][];
  return Object.fromEntries(all.filter(([name, value]) => env[VARIABLES[name]] !== undefined && value !== undefined));
}

/** Reads the environment, and lists everything wrong with it at once. `words` are the request on the command line, if any. */
export function readRunSettings(
  env: NodeJS.ProcessEnv,
  options: { words?: string | undefined; issueNeeded?: boolean } = {},
): RunSettings {
  const problems: string[] = [];
  const text = (name: string, fallback: string, refuse: (value: string) => string | undefined = () => undefined) => {
    const value = env[name];
    if (value === undefined) return fallback;
    const why = value.trim() === "" ? "must not be empty; unset it for the default" : refuse(value.trim());
    if (why) problems.push(`${name}: found ${JSON.stringify(value)}: ${why}`);
    return value.trim();
  };
  const model = (name: string) => (env[name] === undefined ? undefined : text(name, ""));
  const positive = (name: string, fallback: number, most: number) => {
    const value = env[name];
    if (value === undefined) return fallback;
    const number = Number(value);
    if (/^\s*\d+\s*$/.test(value) && number >= 1 && number <= most) return number;
    problems.push(`${name}: found ${JSON.stringify(value)}: must be a whole number from 1 to ${most}`);
    return fallback;
  };

  const verbose = env.VERBOSE ?? "false";
  if (verbose !== "true" && verbose !== "false") {
    problems.push(`VERBOSE: found ${JSON.stringify(verbose)}: must be "true" or "false"`);
  }
  const issue = options.words?.trim() ? options.words : env.ISSUE_BODY;
  if (options.issueNeeded && !issue?.trim()) {
    problems.push("ISSUE_BODY: there is no request: say it on the command line, or set ISSUE_BODY");
  }
  const settings: RunSettings = {
    verbose: verbose === "true",
    issue: issue?.trim() ? issue : undefined,
    agentsDir: text("AGENTS_DIR", ".github/agents"),
    ...(env.AGENTS_DIR !== undefined && { agentsDirSet: true }),
    docDir: text("DOC_DIR", "doc", (value) =>
      isAbsolute(value) || normalize(value).startsWith("..") || normalize(value) === "."
        ? "must be a folder inside the checkout, relative to it"
        : undefined,
    ),
    sessionTimeoutMs: positive("SESSION_TIMEOUT_MS", 300_000, 2_000_000_000),
    maxRetries: positive("MAX_RETRIES", 2, 100),
    summaryFileName: text("SUMMARY_FILE_NAME", "swarm-summary.md", (value) =>
      /[/\\\0]/.test(value) || value === "." || value === ".." ? "must be a file's name, without a folder" : undefined,
    ),
    primaryModel: model("PRIMARY_MODEL"),
    reviewModel: model("REVIEW_MODEL"),
  };
  if (problems.length > 0) throw usageError(`the environment is wrong:\n${problems.map((each) => `  ${each}`).join("\n")}`);
  return settings;
}
