import { homedir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { named } from "../lib/quoted.ts";
import type { Redactor } from "../lib/redact.ts";
import { asData, fromOutside } from "../lib/untrusted.ts";
import { cleanEnvironment } from "../process/environment.ts";
import { type ExecResult, exec, notStarted } from "../process/exec.ts";
import type { FoundProgram } from "../process/programs.ts";
import type { Wrap } from "../process/sandbox.ts";
import { type Tool, type ToolContext, ToolError, tool } from "./tool.ts";

export interface GithubDeps {
  redactor: Redactor;
  /** gh's settings are files that a model could have written, so it sees no more than a model's own commands. */
  wrap: Wrap;
  /** Finds the `gh` program. */
  program: () => FoundProgram;
  env: NodeJS.ProcessEnv;
  /** The repository and branch of the working folder. */
  here: (cwd: string) => Promise<{ repo?: string; branch?: string }>;
}

const LIMIT = 8_000;
const Ref = z
  .string()
  .max(250)
  .regex(/^[^\s\-~^?*[\\][^\s~^?*[\\]*$/, "a branch name");
const Arguments = z.object({
  action: z.enum([
    "create_issue",
    "list_issues",
    "view_issue",
    "comment_issue",
    "close_issue",
    "create_pr",
    "list_prs",
    "view_pr",
    "comment_pr",
    "review_pr",
  ]),
  repo: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9-]{0,38}\/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/, "owner/name")
    .optional()
    .describe("owner/name; else the working folder's"),
  number: z.number().int().positive().optional(),
  title: z.string().min(1).max(256).optional(),
  body: z.string().max(65_536).optional(),
  labels: z.array(z.string().min(1).max(50)).max(20).optional(),
  state: z
    .enum(["open", "closed", "merged", "all", "approve", "request_changes", "comment"])
    .optional()
    .describe("a filter for lists; the verdict for review_pr"),
  base: Ref.optional(),
  head: Ref.optional(),
  limit: z.number().int().min(1).max(100).optional(),
});
type Arguments = z.output<typeof Arguments>;
const LOOKS = ["list_issues", "view_issue", "list_prs", "view_pr"] as const;

/** Issues and pull requests on GitHub, through the `gh` program and its login. */
export function github({ redactor, wrap, program: find, env, here }: GithubDeps): Tool {
  const base = { name: "github", deadlineMs: 70_000, run: perform };
  const reading = tool({
    ...base,
    description: "Read GitHub issues and pull requests through gh.",
    schema: Arguments.extend({ action: Arguments.shape.action.extract(LOOKS) }),
    kind: "read",
  });
  return tool({
    ...base,
    description: "Work with GitHub issues and pull requests through gh.",
    schema: Arguments,
    kind: ({ action }) => (/^(list|view)_/.test(action) ? "read" : "effect"),
    reading,
  });

  async function perform(args: Arguments, { cwd, signal }: ToolContext): Promise<string> {
    const { argv, input } = commandOf(args, args.repo === undefined ? await here(cwd) : {});
    const found = find();
    if (found.path === undefined) throw failed(args.action, notStarted(found.why));
    const [program, ...rest] = await wrap([found.path, ...argv], cwd, {
      network: true,
      access: "read",
      withLogins: true,
      readable: [settingsOfGh(env)],
    });
    const result = await exec(program, rest, {
      cwd,
      env: {
        ...cleanEnvironment(env, redactor),
        ...login(env),
        // Its git would run what a stranger wrote into the folder's settings, with access to the login.
        GIT_DIR: "/dev/null",
        GH_PROMPT_DISABLED: "1",
        GH_NO_UPDATE_NOTIFIER: "1",
        NO_COLOR: "1",
      },
      signal,
      deadlineMs: 60_000,
      maxOutput: LIMIT,
      ...(input === undefined ? {} : { input }),
    });
    if (result.ending !== "exited" || result.code !== 0) throw failed(args.action, result);
    const said = result.stdout.trim();
    if (said === "") return "Done.";
    return /^(list|view)_/.test(args.action) ? fromOutside(`GitHub (${args.action})`, said) : asData(said);
  }
}

/** Every value is passed as `--flag=value`, after `--` or on standard input, so none can be mistaken for a flag. */
function commandOf(args: Arguments, place: { repo?: string; branch?: string }): { argv: string[]; input?: string } {
  const { action, number, title, body, labels, state, base, limit } = args;
  const repo = args.repo ?? place.repo;
  const head = args.head ?? (action === "create_pr" ? place.branch : undefined);
  const [verb, noun] = action.split("_") as [string, string];
  const topic = noun.startsWith("issue") ? "issue" : "pr";
  const flag = (name: string, value: string | number | undefined) => (value === undefined ? [] : [`--${name}=${value}`]);
  const need = <T>(name: keyof Arguments, value: T | undefined): T => {
    if (value === undefined) throw new ToolError(`${name}: is missing; ${action} needs it.`);
    return value;
  };
  const own = [topic, verb, ...flag("repo", repo)];
  const tags = (labels ?? []).flatMap((label) => flag("label", label));
  const refs = topic === "pr" ? [...flag("base", base), ...flag("head", head)] : [];

  switch (verb) {
    case "create":
      return { argv: [...own, ...flag("title", need("title", title)), "--body-file=-", ...tags, ...refs], input: body ?? "" };
    case "list": {
      const wanted = oneOf(state, topic === "pr" ? ["open", "closed", "merged", "all"] : ["open", "closed", "all"], "open");
      const fields = `number,title,state,author,labels,updatedAt${topic === "pr" ? ",headRefName,baseRefName,isDraft" : ""}`;
      return {
        argv: [...own, ...flag("state", wanted), ...flag("limit", limit ?? 30), ...tags, ...refs, flag("json", fields)].flat(),
      };
    }
    case "view": {
      const more = topic === "pr" ? ",isDraft,baseRefName,headRefName,reviewDecision,mergeable,files,reviews" : "";
      return {
        argv: [...own, `--json=number,title,state,author,labels,url,body,comments${more}`, "--", String(need("number", number))],
      };
    }
    case "comment":
      return { argv: [...own, "--body-file=-", "--", String(need("number", number))], input: need("body", body) };
    case "close":
      return { argv: [...own, ...flag("comment", body), "--", String(need("number", number))] };
    default: {
      const verdict = oneOf(state, ["approve", "request_changes", "comment"], "comment");
      const text = verdict === "approve" ? body : need("body", body);
      const bodyFlag = text === undefined ? [] : ["--body-file=-"];
      const argv = [...own, `--${verdict.replace("_", "-")}`, ...bodyFlag, "--", String(need("number", number))];
      return text === undefined ? { argv } : { argv, input: text };
    }
  }
}

function oneOf(state: string | undefined, allowed: [string, ...string[]] | string[], fallback: string): string {
  if (state === undefined) return fallback;
  if (allowed.includes(state)) return state;
  throw new ToolError(`state: found ${named(state)}; allowed here: one of ${allowed.map((name) => `"${name}"`).join(", ")}.`);
}

/** Where `gh` keeps its login if no variable holds it. */
function settingsOfGh(env: NodeJS.ProcessEnv): string {
  return env.GH_CONFIG_DIR || join(env.XDG_CONFIG_HOME || join(env.HOME || homedir(), ".config"), "gh");
}

/** The variables that hold gh's login; no other program gets them. */
function login(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const names = ["GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"];
  return Object.fromEntries(names.filter((name) => env[name]).map((name) => [name, env[name]]));
}

function failed(action: string, result: ExecResult): ToolError {
  if (result.ending === "not-started") {
    return new ToolError(
      `${action} needs the GitHub CLI, and "gh" could not be started here (${named(result.output.trim(), 300)}). Tell the user to install it from https://cli.github.com and to run "gh auth login".`,
    );
  }
  if (result.ending !== "exited")
    return new ToolError(`${action} did not finish and was stopped; whether GitHub took it is not known.`);
  const said = (result.stderr.trim() || result.stdout.trim()).slice(0, 2_000);
  const remedy = result.code === 4 ? ' Tell the user to run "gh auth login", or to set GH_TOKEN.' : "";
  return new ToolError(`${action} failed (gh ended with ${result.code}).${remedy} It said:\n${asData(said)}`);
}
