import { z } from "zod";
import { createForgeClient, type ForgeClient, ForgeError, MOST_PAGES_OF_ISSUES } from "./client.ts";
import { type ForgeDeps, permissionNamed } from "./github.ts";
import type { Check, Comment, Forge, Issue, Pull, Review, ThreadComment } from "./port.ts";

const User = z.object({ login: z.string() }).nullish();
const Labels = z
  .array(z.object({ id: z.number(), name: z.string() }))
  .nullish()
  .transform((labels) => labels ?? []);
const text = z.string().nullish();
const id = z.number().transform(String);
/** Gitea may return null for an empty list. */
const listOf = <T extends z.ZodType>(shape: T) =>
  z
    .array(shape)
    .nullish()
    .transform((all) => all ?? []);

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
  updated_at: z.string(),
});
const CommentShape = z.object({
  id,
  body: text,
  user: User,
  html_url: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
});
const PullShape = z.object({
  number: z.number(),
  html_url: z.string(),
  title: z.string(),
  body: text,
  state: z.string(),
  draft: z.boolean().nullish(),
  merged: z.boolean().nullish(),
  mergeable: z.boolean().nullish(),
  head: z.object({ ref: z.string(), sha: z.string(), repo: z.object({ full_name: z.string() }).nullish() }),
  base: z.object({ ref: z.string() }),
  labels: Labels,
});
const ReviewShape = z.object({
  ...{ id, body: text, user: User, state: z.string(), commit_id: text, submitted_at: text },
  dismissed: z.boolean().nullish(),
});
const ThreadShape = CommentShape.extend({
  path: z.string(),
  position: z.number().nullish(),
  original_position: z.number().nullish(),
});
const TimelineShape = z.object({
  id,
  type: z.string(),
  user: User,
  body: text,
  created_at: z.string(),
  label: z.object({ name: z.string() }).nullish(),
});
/** Some versions answer with nothing at all if a commit has no statuses. */
const Statuses = z
  .object({ statuses: listOf(z.object({ id, context: z.string(), status: z.string(), description: text, target_url: text })) })
  .nullish()
  .transform((page) => page?.statuses ?? []);
/** A page of statuses with fewer than this is the last one: no server is set up to return so few. */
const LEAST_PAGE = 10;
const MOST_STATUS_PAGES = 20;

/** Gitea and Forgejo mark a draft by this prefix of its title. */
const DRAFT = "WIP: ";
/** The other states of a finished status are success, warning and skipped. */
const FAILED = ["failure", "error"];
const VERDICTS: Readonly<Record<string, Review["verdict"]>> = {
  APPROVED: "approved",
  REQUEST_CHANGES: "changes requested",
  PENDING: "pending",
};

const pathOf = (repo: string) => `/repos/${repo.split("/").map(encodeURIComponent).join("/")}`;

/** A repository on Gitea or Forgejo. */
export function createGitea({ apiUrl, repo, token, signal }: ForgeDeps): Forge {
  // Users configure the address of the server or of its API.
  const api = /\/api\/v1\/?$/.test(apiUrl) ? apiUrl : `${apiUrl.replace(/\/$/, "")}/api/v1`;
  const client = createForgeClient({ apiUrl: api, token, signal, scheme: "token", accept: "application/json" });
  const at = pathOf(repo);
  const list = <T>(shape: z.ZodType<T>, path: string, query = {}, most?: number) =>
    client.list(shape, path, query, { sizeName: "limit", ...(most !== undefined && { most }) });

  return {
    kind: "gitea",
    async repository() {
      const found = await client.get(RepositoryShape, at);
      return {
        fullName: found.full_name,
        defaultBranch: found.default_branch,
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
        if (error instanceof ForgeError && error.kind === "missing") {
          // Gitea says the same of a repository that the token may no longer see. Then this fails too.
          await client.get(RepositoryShape, at);
          return "none";
        }
        if (error instanceof ForgeError && error.kind === "forbidden")
          return (await mayWrite(client, repo, login)) ? "write" : "none";
        throw error;
      }
    },
    issue: async (number) => issueOf(await client.get(IssueShape, `${at}/issues/${number}`)),
    async changedSince(since) {
      const query = { state: since === undefined ? "open" : "all", since };
      const found = await list(IssueShape, `${at}/issues`, query, MOST_PAGES_OF_ISSUES);
      return found.map(issueOf).sort((a, b) => a.updatedAt.localeCompare(b.updatedAt));
    },
    async labelings(number) {
      const events = await list(TimelineShape, `${at}/issues/${number}/timeline`);
      // The body is empty if the label was removed.
      return events
        .filter(({ type, body }) => type === "label" && body === "1")
        .map((each) => ({ id: each.id, label: each.label?.name ?? "", by: each.user?.login ?? "", at: each.created_at }));
    },
    async addLabels(number, labels) {
      const known = await list(z.object({ id: z.number(), name: z.string() }), `${at}/labels`);
      const ids = labels.map((label) => {
        const found = known.find(({ name }) => name.toLowerCase() === label.toLowerCase());
        if (!found) throw new ForgeError("invalid", `${client.host} has no label "${label}" in ${repo}. Make it there first.`);
        return found.id;
      });
      await client.send(z.unknown(), "POST", `${at}/issues/${number}/labels`, { labels: ids });
    },
    comments: async (number) => (await client.get(listOf(CommentShape), `${at}/issues/${number}/comments`)).map(commentOf),
    comment: async (number, body) =>
      commentOf(await client.send(CommentShape, "POST", `${at}/issues/${number}/comments`, { body })),
    async findPull({ owner, branch }, base) {
      const found = await list(PullShape, `${at}/pulls`, { state: "all", sort: "recentupdate" });
      const pulls = found
        .map(pullOf)
        .filter(({ head, base: to }) => head.branch === branch && to === base && ownerOf(head.repo) === owner.toLowerCase())
        .sort((a, b) => b.number - a.number);
      return pulls.find(({ state }) => state === "open") ?? pulls[0];
    },
    pull: async (number) => pullOf(await client.get(PullShape, `${at}/pulls/${number}`)),
    openPull: async ({ isDraft, title, ...pull }) =>
      pullOf(await client.send(PullShape, "POST", `${at}/pulls`, { ...pull, title: `${isDraft ? DRAFT : ""}${title}` })),
    changePull: async (number, change) => pullOf(await client.send(PullShape, "PATCH", `${at}/pulls/${number}`, change)),
    async reviews(number) {
      const found = await list(ReviewShape, `${at}/pulls/${number}/reviews`);
      return found
        .filter(({ state }) => state !== "REQUEST_REVIEW")
        .map((each) => ({
          ...{ id: each.id, body: each.body ?? "", author: each.user?.login ?? "", commit: each.commit_id ?? "" },
          verdict: each.dismissed ? "dismissed" : (VERDICTS[each.state] ?? "commented"),
          at: each.submitted_at ?? "",
        }));
    },
    async threads(number) {
      const Reviewed = z.object({ id, state: text, comments_count: z.number().nullish() });
      const reviews = await list(Reviewed, `${at}/pulls/${number}/reviews`);
      // A pending review is shown to its author alone, whose token IO may use: it is not yet said.
      const commented = reviews.filter((review) => review.comments_count !== 0 && review.state !== "PENDING");
      const found = await Promise.all(
        commented.map((review) => client.get(listOf(ThreadShape), `${at}/pulls/${number}/reviews/${review.id}/comments`)),
      );
      return found.flat().map(
        (each): ThreadComment => ({
          ...commentOf(each),
          path: each.path,
          line: each.position || each.original_position || null,
          isOnRemoved: !each.position && Boolean(each.original_position),
          replyTo: null,
        }),
      );
    },
    /**
     * Gitea groups comments on the same line into one thread. A comment without a line is answered below the pull request
     * instead.
     */
    async reply(number, { path, line, isOnRemoved, url }, body) {
      if (line === null) {
        await client.send(z.unknown(), "POST", `${at}/issues/${number}/comments`, { body: `${url}\n\n${body}` });
        return;
      }
      const comments = [{ path, body, [isOnRemoved ? "old_position" : "new_position"]: line }];
      await client.send(z.unknown(), "POST", `${at}/pulls/${number}/reviews`, { event: "COMMENT", body: "", comments });
    },
    checks: (commit) => checksOf(client, `${at}/commits/${encodeURIComponent(commit)}/status`),
    log: async ({ summary }) => summary,
  };
}

/** The statuses of a commit. */
async function checksOf(client: ForgeClient, path: string): Promise<Check[]> {
  const statuses = new Map<string, z.infer<typeof Statuses>[number]>();
  // Gitea returns one page at a time and does not link to the next.
  for (let page = 1; page <= MOST_STATUS_PAGES; page += 1) {
    const found = await client.get(Statuses, path, { limit: 50, page });
    const known = statuses.size;
    for (const each of found) statuses.set(each.id, each);
    if (found.length < LEAST_PAGE || statuses.size === known) break;
  }
  return [...statuses.values()].map(
    (status): Check => ({
      ...{ id: status.id, name: status.context, url: status.target_url ?? null, hasLog: false },
      state: status.status === "pending" ? "running" : FAILED.includes(status.status) ? "failed" : "passed",
      summary: status.description ?? status.status,
    }),
  );
}

/**
 * Gitea tells only a repository's administrators what other users may do, but tells everybody who can be assigned. In a
 * person's repository, those are the users who may write. In an organization's, some of them may not, so nobody is trusted
 * there.
 */
async function mayWrite(client: ForgeClient, repo: string, login: string): Promise<boolean> {
  const at = pathOf(repo);
  const isPersonal = await client.get(z.unknown(), `${at}/teams`).then(
    () => false,
    (error: unknown) => {
      if (error instanceof ForgeError && error.kind === "invalid") return true;
      throw error;
    },
  );
  if (!isPersonal)
    throw new ForgeError(
      "forbidden",
      `${client.host} tells only administrators of ${repo} who may write there. Make the account of IO's token one (in the repository: Settings, Collaborators).`,
    );
  const assignable = await client.get(listOf(z.object({ login: z.string() })), `${at}/assignees`);
  return assignable.some((each) => each.login.toLowerCase() === login.toLowerCase());
}

const ownerOf = (repo: string | null) => repo?.split("/", 1)[0]?.toLowerCase();

function issueOf(found: z.infer<typeof IssueShape>): Issue {
  return {
    ...{ number: found.number, title: found.title, body: found.body ?? "", author: found.user?.login ?? "" },
    ...{ isOpen: found.state === "open", isPull: found.pull_request != null },
    ...{ labels: found.labels.map(({ name }) => name), updatedAt: found.updated_at },
  };
}

function commentOf(found: z.infer<typeof CommentShape>): Comment {
  return {
    ...{ id: found.id, body: found.body ?? "", author: found.user?.login ?? "", url: found.html_url },
    ...{ createdAt: found.created_at, updatedAt: found.updated_at },
  };
}

function pullOf(found: z.infer<typeof PullShape>): Pull {
  const { ref, sha, repo } = found.head;
  const isDraft = found.draft ?? found.title.startsWith(DRAFT);
  return {
    ...{ number: found.number, url: found.html_url, title: found.title, body: found.body ?? "", base: found.base.ref },
    state: found.state === "open" ? "open" : found.merged ? "merged" : "closed",
    isDraft,
    // Gitea reports every draft as not mergeable.
    isMergeable: isDraft ? null : (found.mergeable ?? null),
    head: { branch: ref, commit: sha, repo: repo?.full_name ?? null },
    labels: found.labels.map(({ name }) => name),
  };
}
