import { type GitHubDescription, readGitHubDescription } from "./description.ts";
import type { Asked, Dialect, Reply } from "./server.ts";
import { type DoubleIssue, type DoublePull, nextNumber } from "./state.ts";

const user = (login: string) => ({ login });
const STATES: Record<string, string> = { approved: "APPROVED", changes: "CHANGES_REQUESTED", comment: "COMMENTED" };

/** The part of GitHub's API that IO uses. Every request and answer is checked against GitHub's own description. */
export function gitHubDialect(): Dialect {
  let description: GitHubDescription | undefined;
  return {
    api: "/api/v3",
    answer: (asked, rest) => answer(asked, rest),
    check({ method, path, query, body }, reply) {
      description ??= readGitHubDescription();
      const operation = description.operation(method, path);
      description.checkRequest(operation, query, body);
      if (reply.status === 302 || reply.status >= 400) return reply;
      return { ...reply, body: description.answer(operation, reply.status, reply.body) };
    },
  };
}

function answer(asked: Asked, rest: string): Reply | undefined {
  const { method, repo, repoName, query, body, user: login, url } = asked;
  const given = (body ?? {}) as {
    head?: string;
    base?: string;
    title?: string;
    body?: string;
    draft?: boolean;
    labels?: string[];
  };
  const at = new Date().toISOString();
  const issue = (each: DoubleIssue) => ({
    ...{ number: each.number, title: each.title, body: each.body, state: each.state, user: user(each.by), updated_at: each.at },
    labels: each.labels.map((name) => ({ name })),
    ...(repo.pulls.includes(each as DoublePull) && { pull_request: { url: "x", html_url: "x", diff_url: "x", patch_url: "x" } }),
  });
  const pull = (each: DoublePull) => ({
    ...{ number: each.number, title: each.title, body: each.body, state: each.state, user: user(each.by), updated_at: each.at },
    ...{
      html_url: `${url}/${repoName}/pull/${each.number}`,
      draft: each.draft,
      merged_at: each.mergedAt,
      mergeable: each.mergeable,
    },
    labels: each.labels.map((name) => ({ name })),
    head: { ref: each.head, sha: asked.headOf(each.headRepo, each.head) ?? "0".repeat(40), repo: { full_name: each.headRepo } },
    base: { ref: each.base },
  });
  const comment = (each: { id: number; by: string; body: string; at: string }) => ({
    ...{
      id: each.id,
      body: each.body,
      user: user(each.by),
      html_url: `${url}/c/${each.id}`,
      created_at: each.at,
      updated_at: each.at,
    },
  });
  const number = Number(/^\/(?:issues|pulls)\/(\d+)/.exec(rest)?.[1]);
  const found = [...repo.issues, ...repo.pulls].find((each) => each.number === number);
  const what = `${method} ${rest.replace(/[0-9a-f]{40}/, "<sha>").replace(/\d{1,12}(?=\/|$)/g, "#")}`;
  const ok = (value: unknown): Reply => ({ status: 200, body: value });
  const made = (value: unknown): Reply => ({ status: 201, body: value });
  const invalid = (message: string): Reply => ({ status: 422, body: { message: "Validation Failed", errors: [{ message }] } });

  if (what === "GET ")
    return ok({
      ...{ full_name: repoName, default_branch: repo.defaultBranch, archived: repo.archived },
      permissions: { admin: false, pull: true, push: ["admin", "write"].includes(repo.permissions[login] ?? "") },
    });
  const [, person] = /^\/collaborators\/([^/]+)\/permission$/.exec(rest) ?? [];
  if (person) return ok({ permission: repo.permissions[person] ?? "none", role_name: "x", user: null });
  if (what === "GET /issues")
    return ok(
      [...repo.issues, ...repo.pulls]
        .filter(
          ({ state, at: changed }) =>
            [state, "all"].includes(query.get("state") ?? "open") && changed >= (query.get("since") ?? ""),
        )
        .sort((a, b) => a.at.localeCompare(b.at))
        .map(issue),
    );
  if (what === "GET /pulls") {
    const [owner, head] = (query.get("head") ?? ":").split(":");
    const fits = repo.pulls.filter(
      (each) => each.head === head && each.headRepo.startsWith(`${owner}/`) && each.base === query.get("base"),
    );
    return ok(fits.reverse().map(pull));
  }
  if (what === "POST /pulls") {
    const [owner, head = ""] = given.head!.includes(":") ? given.head!.split(":") : [repoName.split("/")[0], given.head!];
    const headRepo = `${owner}/${repoName.split("/")[1]}`;
    if (asked.headOf(headRepo, head) === undefined) return invalid("head is not there");
    if (repo.pulls.some((each) => each.head === head && each.headRepo === headRepo && each.state === "open"))
      return invalid(`A pull request already exists for ${owner}:${head}.`);
    const each: DoublePull = {
      ...{ number: nextNumber(repo), title: given.title!, body: given.body!, by: login, state: "open", labels: [], at },
      ...{ head, headRepo, base: given.base!, draft: Boolean(given.draft), mergedAt: null, mergeable: null },
    };
    repo.pulls.push(each);
    return made(pull(each));
  }
  if (!found && number > 0) return undefined;
  switch (what) {
    case "GET /issues/#":
      return ok(issue(found!));
    case "GET /issues/#/events":
      return ok(
        repo.events
          .filter((each) => each.issue === number)
          .map((each) => ({
            id: each.id,
            event: "labeled",
            actor: user(each.by),
            label: { name: each.label, color: "x" },
            created_at: each.at,
          })),
      );
    case "POST /issues/#/labels":
      found!.labels = [...new Set([...found!.labels, ...given.labels!])];
      return ok(found!.labels.map((name) => ({ name })));
    case "GET /issues/#/comments":
      return ok(repo.comments.filter((each) => each.issue === number).map(comment));
    case "POST /issues/#/comments": {
      const each = { id: repo.comments.length + 100, issue: number, by: login, body: given.body!, at };
      repo.comments.push(each);
      found!.at = at;
      return made(comment(each));
    }
    case "GET /pulls/#":
      return ok(pull(found as DoublePull));
    case "PATCH /pulls/#":
      Object.assign(found!, given, { at });
      return ok(pull(found as DoublePull));
    case "GET /pulls/#/reviews":
      return ok(
        repo.reviews
          .filter((each) => each.pull === number)
          .map((each) => ({
            id: each.id,
            state: STATES[each.state],
            body: each.body,
            user: user(each.by),
            commit_id: each.commit,
            submitted_at: each.at,
          })),
      );
    case "GET /pulls/#/comments":
      return ok(
        repo.threads
          .filter((each) => each.pull === number)
          .map((each) => ({
            ...comment(each),
            path: each.path,
            line: each.line,
            ...(each.replyTo && { in_reply_to_id: each.replyTo }),
          })),
      );
    case "POST /pulls/#/comments/#/replies": {
      const first = repo.threads.find(({ id }) => id === Number(/comments\/(\d+)/.exec(rest)?.[1]));
      if (!first || first.replyTo) return undefined;
      const each = { ...first, id: repo.threads.length + 500, replyTo: first.id, by: login, body: given.body!, at };
      repo.threads.push(each);
      return made({ ...comment(each), path: each.path, line: each.line, in_reply_to_id: first.id });
    }
    case "GET /commits/<sha>/check-runs": {
      const commit = /[0-9a-f]{40}/.exec(rest)?.[0] ?? "";
      if (!asked.hasCommit(repoName, commit)) return { status: 422, body: { message: `No commit found for SHA: ${commit}` } };
      const runs = repo.checks.filter((each) => rest.includes(each.commit));
      const shown = runs.map(({ id, name, status, conclusion }) => ({
        ...{
          id,
          name,
          status,
          conclusion,
          html_url: `${url}/checks/${id}`,
          output: { title: null, summary: null, text: null, annotations_count: 0, annotations_url: "x" },
        },
        app: { slug: "github-actions" },
      }));
      return ok({ total_count: shown.length, check_runs: shown });
    }
    case "GET /commits/<sha>/status":
      return ok({ state: "pending", statuses: [], total_count: 0 });
    case "GET /actions/jobs/#/logs":
      return {
        status: 302,
        headers: { location: `${url.replace("127.0.0.1", "localhost")}/logs/${/jobs\/(\d+)/.exec(rest)?.[1]}` },
      };
    default:
      return undefined;
  }
}
