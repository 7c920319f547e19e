import { z } from "zod";
import { named } from "../lib/quoted.ts";
import type { Redactor } from "../lib/redact.ts";
import { cleanEnvironment } from "../process/environment.ts";
import { type ExecResult, exec } from "../process/exec.ts";
import { unwrapped, type Wrap } from "../process/sandbox.ts";
import { type Tool, ToolError, tool } from "./tool.ts";
import { asData, fromOutside } from "./untrusted.ts";

export interface GithubDeps {
  redactor: Redactor;
  /** Its settings are files that a model could have written: it sees no more than a model's own commands. */
  wrap?: Wrap;
  env?: NodeJS.ProcessEnv;
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

/** Issues and pull requests on GitHub, through the `gh` program and the login it has. */
export function github({ redactor, wrap = unwrapped, env = process.env }: GithubDeps): Tool {
  return tool({
    name: "github",
    description: "Work with GitHub issues and pull requests through gh.",
    schema: Arguments,
    kind: ({ action }) => (/^(list|view)_/.test(action) ? "read" : "effect"),
    deadlineMs: 70_000,
    async run(args, { cwd, signal }) {
      const { argv, input } = commandOf(args);
      const [program, ...rest] = await wrap(["gh", ...argv], cwd);
      const result = await exec(program, rest, {
        cwd,
        env: {
          ...cleanEnvironment(env, redactor),
          ...login(env),
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
    },
  });
}

/** Every value travels as `--flag=value` or through standard input, so none can be taken for a flag. */
function commandOf(args: Arguments): { argv: string[]; input?: string } {
  const { action, repo, number, title, body, labels, state, base, head, limit } = args;
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

/** What `gh` needs to know who it is; no other program is given it. */
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
