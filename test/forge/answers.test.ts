import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { ForgeError } from "../../src/forge/client.ts";
import { createForgeSteps, settleEarlier } from "../../src/forge/forge-steps.ts";
import { createGitea } from "../../src/forge/gitea.ts";
import { createGitHub } from "../../src/forge/github.ts";
import { openStore } from "../../src/store/open.ts";
import { createPullRows } from "../../src/store/pulls.ts";

interface Answered {
  status?: number;
  headers?: Record<string, string>;
  body?: unknown;
}
interface Heard {
  method: string;
  /** The path and the query. */
  path: string;
  authorization: string | undefined;
  body: string;
}

/** A server that answers as the test says; what it has no answer for is not there. */
async function serve(answer: (path: string, query: URLSearchParams) => Answered | undefined) {
  const heard: Heard[] = [];
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const { method = "" } = request;
    heard.push({ method, path: url.pathname + url.search, authorization: request.headers.authorization, body });
    const found = answer(url.pathname, url.searchParams);
    response.writeHead(found ? (found.status ?? 200) : 404, found?.headers);
    response.end(found?.body === undefined ? "" : JSON.stringify(found.body));
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard };
}

const REPOSITORY = { full_name: "acme/a", default_branch: "main" };
const comment = (id: number) => ({
  id,
  body: `comment ${id}`,
  user: { login: "mona" },
  html_url: "",
  created_at: "",
  updated_at: "",
});
const next = (url: string) => ({ link: `<${url}>; rel="next", <${url}>; rel="last"` });

test("a list is read to its last page, and no page of another host gets the token", async () => {
  const other = await serve(() => ({ body: [comment(3)] }));
  const { url, heard } = await serve((path, query) => {
    if (path !== "/repos/acme/a/issues/1/comments") return undefined;
    const isSecond = query.get("page") === "2";
    return {
      headers: next(isSecond ? `${other.url}/repos/acme/a/issues/1/comments?page=3` : `${url}${path}?page=2`),
      body: [comment(isSecond ? 2 : 1)],
    };
  });
  const forge = createGitHub({ apiUrl: url, repo: "acme/a", token: "t" });
  expect((await forge.comments(1)).map(({ id }) => id)).toEqual(["1", "2"]);
  expect(heard.map(({ path }) => path)).toEqual([
    "/repos/acme/a/issues/1/comments?per_page=100",
    "/repos/acme/a/issues/1/comments?page=2",
  ]);
  expect(other.heard).toEqual([]);
});

test("a redirect to another host is not followed, whatever is asked, and that host never gets the token", async () => {
  const other = await serve(() => ({ body: REPOSITORY }));
  const { url } = await serve((path) => ({ status: 307, headers: { location: `${other.url}${path}` } }));
  const forge = createGitHub({ apiUrl: url, repo: "acme/a", token: "t" });
  for (const ask of [() => forge.repository(), () => forge.comment(1, "hello")])
    await expect(ask()).rejects.toThrow(/leads to 127\.0\.0\.1:\d+, which IO gives no token to/);
  expect(other.heard).toEqual([]);
});

test("a failed check is seen however many others there are, on GitHub and on Gitea, which links to no next page", async () => {
  const many = Array.from({ length: 120 }, (_, index) => index + 1);
  const page = (query: URLSearchParams, size: number) => {
    const from = (Number(query.get("page") ?? 1) - 1) * size;
    return many.slice(from, from + size);
  };
  const github = await serve((path, query) => {
    const shown = page(query, 100);
    const headers = shown.length === 100 ? next(`${github.url}${path}?page=2`) : {};
    if (path.endsWith("/check-runs"))
      return {
        headers,
        body: {
          check_runs: shown.map((id) => ({
            id,
            name: `check ${id}`,
            status: "completed",
            conclusion: id === 120 ? "failure" : "success",
          })),
        },
      };
    return {
      headers,
      body: { statuses: shown.map((id) => ({ id, context: `status ${id}`, state: id === 119 ? "failure" : "success" })) },
    };
  });
  const failed = async (forge: { checks: typeof onGitHub.checks }) =>
    (await forge.checks("abc")).filter(({ state }) => state === "failed").map(({ name }) => name);
  const onGitHub = createGitHub({ apiUrl: github.url, repo: "acme/a", token: "t" });
  expect(await failed(onGitHub)).toEqual(["check 120", "status 119"]);

  // The server, not IO, decides on the size of a page.
  const gitea = await serve((_path, query) => ({
    body: {
      statuses: page(query, 30).map((id) => ({ id, context: `status ${id}`, status: id === 119 ? "failure" : "success" })),
    },
  }));
  const onGitea = createGitea({ apiUrl: gitea.url, repo: "acme/a", token: "t" });
  expect(await failed(onGitea)).toEqual(["status 119"]);
  // One that answers every page with the same is not asked for ever.
  const same = await serve(() => ({ body: { statuses: many.map((id) => ({ id, context: `${id}`, status: "success" })) } }));
  expect(await createGitea({ apiUrl: same.url, repo: "acme/a", token: "t" }).checks("abc")).toHaveLength(120);
  expect(same.heard).toHaveLength(2);
  // And one that answers with nothing has no checks.
  const empty = await serve(() => ({}));
  expect(await createGitea({ apiUrl: empty.url, repo: "acme/a", token: "t" }).checks("abc")).toEqual([]);
});

test("all issues are seen by the first look, however many there are", async () => {
  const count = 2_600;
  const { url } = await serve((path, query) => {
    const size = query.has("limit") ? 50 : 100;
    const page = Number(query.get("page") ?? 1);
    const shown = Array.from({ length: Math.min(size, count - (page - 1) * size) }, (_, index) => ({
      ...{ number: count - (page - 1) * size - index, title: "", state: "open", labels: [], updated_at: "" },
    }));
    const isLast = page * size >= count;
    const query2 = `${query.has("limit") ? "limit" : "per_page"}=100&page=${page + 1}`;
    return { headers: isLast ? {} : next(`${url}${path}?${query2}`), body: shown };
  });
  for (const create of [createGitHub, createGitea]) {
    const found = await create({ apiUrl: url, repo: "acme/a", token: "t" }).changedSince(undefined);
    expect(new Set(found.map(({ number }) => number)).size).toBe(count);
  }
});

test("with a token that may not read checks, those of Actions are read as jobs, and reviews are answered though neither may be read", async () => {
  const jobs = { jobs: [{ id: 5, name: "build", status: "completed", conclusion: "failure", html_url: "x" }] };
  const bodies: Record<string, unknown> = {
    "/repos/acme/a/actions/runs?per_page=100&head_sha=abc": { total_count: 1, workflow_runs: [{ id: 9 }] },
    "/repos/acme/a/actions/runs/9/jobs?per_page=100&filter=latest": { total_count: 1, ...jobs },
    "/repos/acme/a/commits/abc/status?per_page=100": { statuses: [] },
  };
  const refused = { status: 403, body: { message: "Resource not accessible by personal access token" } };
  const { url } = await serve((path, query) => (bodies[`${path}?${query}`] ? { body: bodies[`${path}?${query}`] } : refused));
  const forge = createGitHub({ apiUrl: url, repo: "acme/a", token: "t" });
  expect(await forge.checks("abc")).toMatchObject([{ id: "5", name: "build", state: "failed", hasLog: true }]);
  await expect(forge.checks("def")).rejects.toMatchObject({ kind: "forbidden" });
});

test("where the forge has no drafts, the title says that the work is not approved", async () => {
  const pull = { number: 1, state: "open", head: { ref: "a", sha: "abc" }, base: { ref: "main" } };
  const { url, heard } = await serve(() => {
    const { draft, title } = JSON.parse(heard.at(-1)!.body) as { draft: boolean; title: string };
    const message = "Draft pull requests are not supported in this repository.";
    return draft ? { status: 422, body: { message } } : { status: 201, body: { ...pull, title, draft } };
  });
  const forge = createGitHub({ apiUrl: url, repo: "acme/a", token: "t" });
  const wanted = { title: "Greet", body: "", head: "a", base: "main" };
  expect(await forge.openPull({ ...wanted, isDraft: true })).toMatchObject({ title: "WIP: Greet", isDraft: false });
  expect(await forge.openPull({ ...wanted, isDraft: false })).toMatchObject({ title: "Greet" });
  expect(heard).toHaveLength(3);
});

test.each([
  ["GitHub", createGitHub],
  ["Gitea", createGitea],
])("on %s nobody loses their rights because a token no longer sees the repository", async (_name, create) => {
  let isSeen = true;
  const { url } = await serve((path) => (isSeen && path.endsWith("/repos/acme/a") ? { body: REPOSITORY } : undefined));
  const forge = create({ apiUrl: url, repo: "acme/a", token: "t" });
  expect(await forge.permissionOf("stranger")).toBe("none");
  isSeen = false;
  await expect(forge.permissionOf("mona")).rejects.toMatchObject({ kind: "missing" });
});

test("on Gitea a review that was dismissed or is not yet sent sets nothing going", async () => {
  const review = (id: number, state: string, more: object = {}) => ({
    id,
    state,
    body: "no",
    user: { login: "ted" },
    comments_count: 1,
    ...more,
  });
  const { url } = await serve((path) => {
    if (path.endsWith("/pulls/2/reviews"))
      return { body: [review(1, "REQUEST_CHANGES"), review(2, "REQUEST_CHANGES", { dismissed: true }), review(3, "PENDING")] };
    const of = /\/reviews\/(\d)\/comments$/.exec(path)?.[1];
    return of ? { body: [{ ...comment(Number(of)), path: "a.ts", position: 3 }] } : undefined;
  });
  const forge = createGitea({ apiUrl: url, repo: "acme/a", token: "t" });
  expect((await forge.reviews(2)).map(({ verdict }) => verdict)).toEqual(["changes requested", "dismissed", "pending"]);
  expect((await forge.threads(2)).map(({ id }) => id)).toEqual(["1", "2"]);
});

test("a comment on a removed line is answered there", async () => {
  const { url, heard } = await serve((path) => {
    if (path.endsWith("/pulls/2/reviews")) return { body: [{ id: 1, state: "COMMENT", comments_count: 2 }] };
    const removed = { ...comment(1), path: "a.ts", position: 0, original_position: 7 };
    return { body: [removed, { ...comment(2), path: "a.ts", position: 8, original_position: 0 }] };
  });
  const forge = createGitea({ apiUrl: url, repo: "acme/a", token: "t" });
  const threads = await forge.threads(2);
  expect(threads.map(({ line, isOnRemoved }) => [line, isOnRemoved])).toEqual([
    [7, true],
    [8, false],
  ]);
  for (const thread of threads) await forge.reply(2, thread, "done");
  const sent = heard
    .filter(({ method }) => method === "POST")
    .map(({ body }) => (JSON.parse(body) as { comments: object[] }).comments[0]);
  expect(sent).toEqual([
    { path: "a.ts", body: "done", old_position: 7 },
    { path: "a.ts", body: "done", new_position: 8 },
  ]);
});

test("a request whose answer was lost is looked up, and marked as uncertain only where nobody can tell", async () => {
  const rows = createPullRows(openStore(":memory:"));
  const at = { projectPath: "/a", part: 0, state: "waiting", draft: null, wantedBase: null, labels: ["bug"] } as const;
  rows.insert({ id: "p_1", owner: { kind: "run", id: "r_1" }, ...at, labels: [...at.labels] });
  const row = rows.find("p_1")!;
  const { propose } = createForgeSteps({ rows, pusher: {} as never });
  const lost = new ForgeError("uncertain", "no answer");
  const opened = { number: 1 };
  const situation = (found: object | undefined) =>
    ({
      row,
      place: { repo: "acme/a", headRepo: "acme/a" },
      proposal: { branch: "io/work", title: "Greet", body: "words" },
      forge: { openPull: () => Promise.reject(lost), findPull: async () => found },
      base: "main",
    }) as unknown as Parameters<typeof propose>[0];
  expect(await propose(situation(opened), undefined, false)).toBe(opened);
  await expect(propose(situation(undefined), undefined, false)).rejects.toBe(lost);
  expect(rows.requests("p_1").map(({ action, state }) => [action, state])).toEqual([
    ["open", "done"],
    ["open", "unknown"],
  ]);
  // What an earlier process had begun is looked up in the same way.
  for (const action of ["open", "push", "label"]) rows.beginRequest("p_1", action, { commit: "abc" });
  settleEarlier(rows, row, opened as never, "abc");
  expect(
    rows
      .requests("p_1")
      .slice(2)
      .map(({ state }) => state),
  ).toEqual(["done", "done", "unknown"]);
});
