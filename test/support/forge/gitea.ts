import type { Asked, Dialect, Reply } from "./server.ts";
import { type DoubleIssue, type DoublePull, nextNumber } from "./state.ts";

const user = (login: string) => ({ id: 1, login, username: login });
const STATES: Record<string, string> = { approved: "APPROVED", changes: "REQUEST_CHANGES", comment: "COMMENT" };

interface Given {
  head?: string;
  base?: string;
  title?: string;
  body?: string;
  labels?: number[];
  comments?: { path: string; body: string; new_position: number }[];
}

/** The part of the Gitea and Forgejo API that IO uses, written from the description that Gitea publishes. */
export const giteaDialect = (): Dialect => ({ api: "/api/v1", answer });

function answer(asked: Asked, rest: string): Reply | undefined {
  const { method, repo, repoName, query, body, user: login, url } = asked;
  const given = (body ?? {}) as Given;
  const at = new Date().toISOString();
  const labelsOf = (names: string[]) => names.map((name) => ({ id: repo.labels.indexOf(name) + 1, name }));
  const issue = (each: DoubleIssue) => ({
    ...{ id: each.number, number: each.number, title: each.title, body: each.body, state: each.state, user: user(each.by) },
    ...{ labels: labelsOf(each.labels), updated_at: each.at, pull_request: repo.pulls.includes(each as DoublePull) ? {} : null },
  });
  const pull = (each: DoublePull) => ({
    ...{ id: each.number, number: each.number, title: each.title, body: each.body, state: each.state, user: user(each.by) },
    ...{
      html_url: `${url}/${repoName}/pulls/${each.number}`,
      draft: each.title.startsWith("WIP:"),
      merged: each.mergedAt !== null,
      // Like the real one: it reports neither drafts nor pull requests that it still checks as mergeable.
      mergeable: each.mergeable === true && !each.title.startsWith("WIP:"),
    },
    labels: labelsOf(each.labels),
    head: { ref: each.head, sha: asked.headOf(each.headRepo, each.head) ?? "", repo: { full_name: each.headRepo } },
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

  if (what === "GET ")
    return ok({
      ...{ full_name: repoName, default_branch: repo.defaultBranch, archived: repo.archived },
      permissions: { admin: false, pull: true, push: ["admin", "write"].includes(repo.permissions[login] ?? "") },
    });
  const [, person] = /^\/collaborators\/([^/]+)\/permission$/.exec(rest) ?? [];
  // Like the real one: only administrators may see the permissions of others.
  if (person && person !== login && repo.permissions[login] !== "admin")
    return {
      status: 403,
      body: { message: "Only admins can query all permissions, repo admins can query all repo permissions" },
    };
  if (what === "GET /teams")
    return repo.isOfOrganization ? ok([]) : { status: 405, body: { message: "repo is not owned by an organization" } };
  if (what === "GET /assignees")
    return ok(
      Object.keys(repo.permissions)
        .filter((name) => repo.permissions[name] !== "read")
        .map(user),
    );
  if (person)
    return repo.permissions[person]
      ? ok({ permission: repo.permissions[person], role_name: "x", user: user(person) })
      : undefined;
  if (what === "GET /labels") return ok(labelsOf(repo.labels));
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
  if (what === "GET /pulls") return ok(repo.pulls.length > 0 ? repo.pulls.map(pull) : null);
  if (what === "POST /pulls") {
    const [owner, head = ""] = given.head!.includes(":") ? given.head!.split(":") : [repoName.split("/")[0], given.head!];
    const headRepo = `${owner}/${repoName.split("/")[1]}`;
    if (asked.headOf(headRepo, head) === undefined) return undefined;
    if (repo.pulls.some((each) => each.head === head && each.headRepo === headRepo && each.state === "open"))
      return { status: 409, body: { message: "pull request already exists for these targets" } };
    const each: DoublePull = {
      ...{ number: nextNumber(repo), title: given.title!, body: given.body!, by: login, state: "open", labels: [], at },
      ...{ head, headRepo, base: given.base!, draft: false, mergedAt: null, mergeable: null },
    };
    repo.pulls.push(each);
    return made(pull(each));
  }
  if (!found && number > 0) return undefined;
  switch (what) {
    case "GET /issues/#":
      return ok(issue(found!));
    case "GET /issues/#/timeline":
      return ok(
        repo.events
          .filter((each) => each.issue === number)
          .map((each) => ({
            id: each.id,
            type: "label",
            body: "1",
            user: user(each.by),
            label: { id: 1, name: each.label },
            created_at: each.at,
          })),
      );
    case "POST /issues/#/labels":
      found!.labels = [...new Set([...found!.labels, ...given.labels!.map((id) => repo.labels[Number(id) - 1]!)])];
      return ok(labelsOf(found!.labels));
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
      return made(pull(found as DoublePull));
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
            comments_count: repo.threads.filter(({ review }) => review === each.id).length,
          })),
      );
    case "POST /pulls/#/reviews": {
      const review = repo.reviews.length + 50;
      repo.reviews.push({ id: review, pull: number, by: login, state: "comment", body: given.body ?? "", commit: "", at });
      for (const { path, body: said, new_position: line } of given.comments ?? [])
        repo.threads.push({ id: repo.threads.length + 500, pull: number, review, by: login, body: said, path, line, at });
      return ok({ id: review });
    }
    case "GET /pulls/#/reviews/#/comments": {
      const review = Number(/reviews\/(\d+)/.exec(rest)?.[1]);
      return ok(
        repo.threads
          .filter((each) => each.review === review)
          .map((each) => ({ ...comment(each), path: each.path, position: each.line })),
      );
    }
    case "GET /commits/<sha>/status": {
      const checks = repo.checks.filter((each) => rest.includes(each.commit));
      const state = (each: (typeof checks)[number]) =>
        each.status !== "completed" ? "pending" : each.conclusion === "neutral" ? "warning" : each.conclusion;
      const statuses = checks.map((each) => ({
        id: each.id,
        context: each.name,
        status: state(each),
        description: each.log,
        target_url: "",
      }));
      return ok({ state: "pending", statuses: statuses.length > 0 ? statuses : null, total_count: statuses.length });
    }
    default:
      return undefined;
  }
}
