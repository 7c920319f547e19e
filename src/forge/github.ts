import { z } from "zod";
import { createForgeClient, type ForgeClient, ForgeError, MOST_PAGES_OF_ISSUES } from "./client.ts";
import type { Check, Comment, Forge, Issue, Permission, Pull, Review, ThreadComment } from "./port.ts";

export interface ForgeDeps {
  /** The API's address, as the user configured it. */
  apiUrl: string;
  repo: string;
  token: string;
  signal?: AbortSignal | undefined;
}

/** Null if the account was deleted. */
const User = z.object({ login: z.string() }).nullish();
const Label = z.union([z.string(), z.object({ name: z.string().nullish() })]);
const Labels = z
  .array(Label)
  .nullish()
  .transform((labels) => labels ?? []);
const text = z.string().nullish();
/** Servers that imitate GitHub's API leave out fields that are only for display. */
const shown = text.transform((said) => said ?? "");
const id = z.union([z.number(), z.string()]).transform(String);

const RepositoryShape = z.object({
  full_name: z.string(),
  default_branch: z.string(),
  archived: z.boolean().nullish(),
  permissions: z.object({ push: z.boolean() }).nullish(),
});
const IssueShape = z.object({
  number: z.number(),
  title: z.string(),
  body: text,
  user: User,
  state: z.string(),
  labels: Labels,
  pull_request: z.object({}).nullish(),
  updated_at: shown,
});
const CommentShape = z.object({
  id,
  body: text,
  user: User,
  html_url: shown,
  created_at: shown,
  updated_at: text,
});
const PullShape = z.object({
  number: z.number(),
  html_url: shown,
  title: z.string(),
  body: text,
  state: z.string(),
  draft: z.boolean().nullish(),
  merged: z.boolean().nullish(),
  merged_at: text,
  mergeable: z.boolean().nullish(),
  head: z.object({ ref: z.string(), sha: z.string(), repo: z.object({ full_name: z.string() }).nullish() }),
  base: z.object({ ref: z.string() }),
  labels: Labels,
});
const ReviewShape = z.object({
  id,
  body: text,
  user: User,
  state: z.string(),
  commit_id: text,
  submitted_at: z.string().nullish(),
});
const ThreadShape = CommentShape.extend({
  path: z.string(),
  line: z.number().nullish(),
  side: text,
  original_line: z.number().nullish(),
  in_reply_to_id: id.nullish(),
});
const EventShape = z.object({
  id,
  event: z.string(),
  actor: User,
  created_at: shown,
  label: z.object({ name: z.string().nullish() }).nullish(),
});
const CheckRun = z.object({
  id,
  name: z.string(),
  status: z.string(),
  conclusion: text,
  html_url: text,
  output: z.object({ title: text, summary: text }).nullish(),
  app: z.object({ slug: z.string().nullish() }).nullish(),
});
const CheckRuns = z.object({ check_runs: z.array(CheckRun) });
const WorkflowRuns = z.object({ workflow_runs: z.array(z.object({ id })) });
const Jobs = z.object({ jobs: z.array(CheckRun) });
const Statuses = z.object({
  statuses: z.array(z.object({ id, context: z.string(), state: z.string(), description: text, target_url: text })),
});

/**
 * The conclusions that say something about the commit. A check that was cancelled or replaced, or that waits for a person, says
 * nothing.
 */
const CONCLUSIONS: Record<string, Check["state"]> = {
  ...{ success: "passed", neutral: "passed", skipped: "passed" },
  ...{ failure: "failed", timed_out: "failed", startup_failure: "failed" },
};
const VERDICTS: Readonly<Record<string, Review["verdict"]>> = {
  APPROVED: "approved",
  CHANGES_REQUESTED: "changes requested",
  DISMISSED: "dismissed",
  PENDING: "pending",
};

/** A repository on github.com or an Enterprise server, accessed through the REST API only. */
export function createGitHub({ apiUrl, repo, token, signal }: ForgeDeps): Forge {
  const client = createForgeClient({
    ...{ apiUrl, token, signal, scheme: "Bearer", accept: "application/vnd.github+json, application/json;q=0.9" },
    headers: { "x-github-api-version": "2022-11-28" },
  });
  const at = `/repos/${repo.split("/").map(encodeURIComponent).join("/")}`;

  return {
    kind: "github",
    async repository() {
      const found = await client.get(RepositoryShape, at);
      return {
        fullName: found.full_name,
        defaultBranch: found.default_branch,
        // If the server does not say, the push itself will show it.
        canPush: found.permissions?.push ?? true,
        isArchived: found.archived ?? false,
      };
    },
    async permissionOf(login) {
      const path = `${at}/collaborators/${encodeURIComponent(login)}/permission`;
      try {
        const { permission } = await client.get(z.object({ permission: z.string() }), path);
        return permissionNamed(permission);
      } catch (error) {
        if (!(error instanceof ForgeError) || error.kind !== "missing") throw error;
        // GitHub says the same of a repository that the token may no longer see. Then this fails too.
        await client.get(RepositoryShape, at);
        return "none";
      }
    },
    issue: async (number) => issueOf(await client.get(IssueShape, `${at}/issues/${number}`)),
    async changedSince(since) {
      const query = { state: since === undefined ? "open" : "all", sort: "updated", direction: "asc", since };
      return (await client.list(IssueShape, `${at}/issues`, query, { most: MOST_PAGES_OF_ISSUES })).map(issueOf);
    },
    async labelings(number) {
      const events = await client.list(EventShape, `${at}/issues/${number}/events`);
      return events
        .filter(({ event }) => event === "labeled")
        .map((each) => ({
          id: each.id,
          label: each.label?.name ?? "",
          by: each.actor?.login ?? "",
          at: each.created_at,
        }));
    },
    async addLabels(number, labels) {
      await client.send(z.unknown(), "POST", `${at}/issues/${number}/labels`, { labels });
    },
    comments: async (number) => (await client.list(CommentShape, `${at}/issues/${number}/comments`)).map(commentOf),
    comment: async (number, body) =>
      commentOf(await client.send(CommentShape, "POST", `${at}/issues/${number}/comments`, { body })),
    async findPull({ owner, branch }, base) {
      const query = { head: `${owner}:${branch}`, base, state: "all", sort: "created", direction: "desc" };
      const found = await client.list(PullShape, `${at}/pulls`, query);
      const pulls = found.map(pullOf).filter(({ head }) => head.branch === branch);
      return pulls.find(({ state }) => state === "open") ?? pulls[0];
    },
    pull: async (number) => pullOf(await client.get(PullShape, `${at}/pulls/${number}`)),
    async openPull({ isDraft, ...pull }) {
      const open = (change: object) => client.send(PullShape, "POST", `${at}/pulls`, { ...pull, draft: isDraft, ...change });
      const made = await open({}).catch((error: unknown) => {
        // Private repositories of free accounts have no drafts, so the title says it.
        const hasNoDrafts = error instanceof ForgeError && error.kind === "invalid" && /drafts? pull/i.test(error.message);
        if (!isDraft || !hasNoDrafts) throw error;
        return open({ draft: false, title: `WIP: ${pull.title}` });
      });
      return pullOf(made);
    },
    changePull: async (number, change) => pullOf(await client.send(PullShape, "PATCH", `${at}/pulls/${number}`, change)),
    async reviews(number) {
      const found = await client.list(ReviewShape, `${at}/pulls/${number}/reviews`);
      return found.map((each) => ({
        ...{ id: each.id, body: each.body ?? "", author: each.user?.login ?? "", commit: each.commit_id ?? "" },
        verdict: VERDICTS[each.state] ?? "commented",
        at: each.submitted_at ?? "",
      }));
    },
    async threads(number) {
      const found = await client.list(ThreadShape, `${at}/pulls/${number}/comments`);
      return found.map(
        (each): ThreadComment => ({
          ...commentOf(each),
          path: each.path,
          line: each.line ?? each.original_line ?? null,
          isOnRemoved: each.side === "LEFT",
          replyTo: each.in_reply_to_id ?? null,
        }),
      );
    },
    async reply(number, { id: comment, replyTo }, body) {
      // GitHub accepts replies only to the first comment of a thread.
      await client.send(z.unknown(), "POST", `${at}/pulls/${number}/comments/${replyTo ?? comment}/replies`, { body });
    },
    checks: (commit) => checksOf(client, at, encodeURIComponent(commit)),
    log: async ({ id: job, hasLog, summary }) =>
      hasLog ? client.tail(`${at}/actions/jobs/${encodeURIComponent(job)}/logs`) : summary,
  };
}

/** The checks of a commit, and the statuses that other services gave it. */
async function checksOf(client: ForgeClient, at: string, commit: string): Promise<Check[]> {
  const of = `${at}/commits/${commit}`;
  const [runs, ofStatuses] = await Promise.all([
    checkRunsOf(client, of)
      .catch(jobsIfForbidden(client, at, commit))
      .catch(ifMissing([])),
    client.pages(Statuses, `${of}/status`).catch(ifMissing([])),
  ]);
  const statuses = ofStatuses.flatMap((page) => page.statuses);
  return [
    ...runs.map((run): Check => {
      const ended = CONCLUSIONS[run.conclusion ?? ""] ?? "undecided";
      return {
        ...{ id: run.id, name: run.name, url: run.html_url ?? null, hasLog: mayHaveLog(run.app?.slug) },
        // A waiting check runs only after a person starts it.
        state: run.status === "completed" ? ended : run.status === "waiting" ? "undecided" : "running",
        summary: [run.conclusion, run.output?.title, run.output?.summary].filter(Boolean).join(": "),
      };
    }),
    ...statuses.map(
      (status): Check => ({
        ...{ id: `status-${status.id}`, name: status.context, url: status.target_url ?? null, hasLog: false },
        state: status.state === "pending" ? "running" : status.state === "success" ? "passed" : "failed",
        summary: status.description ?? status.state,
      }),
    ),
  ];
}

async function checkRunsOf(client: ForgeClient, of: string): Promise<z.infer<typeof CheckRun>[]> {
  const pages = await client.pages(CheckRuns, `${of}/check-runs`, { filter: "latest" });
  return pages.flatMap(({ check_runs }) => check_runs);
}

/** GitHub lets no fine-grained token read checks, but lets it read the jobs of Actions, which are checks with the same IDs. */
const jobsIfForbidden = (client: ForgeClient, at: string, commit: string) => async (error: unknown) => {
  if (!(error instanceof ForgeError) || error.kind !== "forbidden") throw error;
  const runs = await client.pages(WorkflowRuns, `${at}/actions/runs`, { head_sha: commit });
  const jobs = runs
    .flatMap(({ workflow_runs }) => workflow_runs)
    .map((run) => client.pages(Jobs, `${at}/actions/runs/${run.id}/jobs`, { filter: "latest" }));
  return (await Promise.all(jobs)).flat().flatMap((page) => page.jobs);
};

/** The API itself reports `maintain` as `write`, and `triage` as `read`. */
export function permissionNamed(name: string): Permission {
  if (name === "owner" || name === "admin") return "admin";
  if (name === "write" || name === "maintain") return "write";
  return name === "read" || name === "triage" ? "read" : "none";
}

/** Some older servers have no checks, others no statuses. */
const ifMissing =
  <T>(instead: T) =>
  (error: unknown): T => {
    if (error instanceof ForgeError && error.kind === "missing") return instead;
    throw error;
  };

/** A check of GitHub Actions is a job with the same ID. If the server does not name the app, try to read the log. */
const mayHaveLog = (app: string | null | undefined) => app == null || app === "github-actions";

const labelNames = (labels: readonly z.infer<typeof Label>[]) =>
  labels.map((label) => (typeof label === "string" ? label : (label.name ?? ""))).filter(Boolean);

function issueOf(found: z.infer<typeof IssueShape>): Issue {
  return {
    ...{ number: found.number, title: found.title, body: found.body ?? "", author: found.user?.login ?? "" },
    ...{ isOpen: found.state === "open", isPull: found.pull_request != null },
    ...{ labels: labelNames(found.labels), updatedAt: found.updated_at },
  };
}

function commentOf(found: z.infer<typeof CommentShape>): Comment {
  return {
    ...{ id: found.id, body: found.body ?? "", author: found.user?.login ?? "", url: found.html_url },
    ...{ createdAt: found.created_at, updatedAt: found.updated_at ?? found.created_at },
  };
}

function pullOf(found: z.infer<typeof PullShape>): Pull {
  const { ref, sha, repo } = found.head;
  return {
    ...{ number: found.number, url: found.html_url, title: found.title, body: found.body ?? "", base: found.base.ref },
    state: found.state === "open" ? "open" : found.merged_at || found.merged ? "merged" : "closed",
    isDraft: found.draft ?? false,
    isMergeable: found.mergeable ?? null,
    head: { branch: ref, commit: sha, repo: repo?.full_name ?? null },
    labels: labelNames(found.labels),
  };
}
