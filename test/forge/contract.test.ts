import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { ForgeError } from "../../src/forge/client.ts";
import { createGitea } from "../../src/forge/gitea.ts";
import { createGitHub } from "../../src/forge/github.ts";
import type { Forge } from "../../src/forge/port.ts";
import { giteaDialect } from "../support/forge/gitea.ts";
import { gitHubDialect } from "../support/forge/github.ts";
import { type ForgeDouble, startForge, TOKEN } from "../support/forge/server.ts";
import type { ForgeRepo } from "../support/forge/state.ts";
import { collectEndings, temporaryFolder } from "../support/home.ts";
import { git, makeProject } from "../support/swarm/index.ts";

const KINDS = [
  { name: "GitHub", dialect: gitHubDialect, create: createGitHub },
  { name: "Gitea", dialect: giteaDialect, create: createGitea },
];

describe.each(KINDS)("a repository on $name", ({ dialect, create }) => {
  const { atTheEnd, end } = collectEndings();
  let double: ForgeDouble;
  let repo: ForgeRepo;
  let forge: Forge;
  let head: string;
  beforeAll(async () => {
    double = await startForge(dialect(), atTheEnd);
    const project = makeProject({}, true, temporaryFolder(atTheEnd));
    git(project, "switch", "-q", "-c", "io/work");
    git(project, "commit", "-q", "--allow-empty", "-m", "work");
    head = git(project, "rev-parse", "HEAD");
    repo = double.add("acme/widget", project);
    forge = create({ apiUrl: double.apiUrl, repo: "acme/widget", token: TOKEN });
    const at = "2026-01-02T03:04:05Z";
    repo.issues.push({ number: 1, title: "Greet", body: "Say hello", by: "mona", state: "open", labels: ["io"], at });
    repo.events.push({ id: 7, issue: 1, label: "io", by: "reader", at }, { id: 8, issue: 1, label: "io", by: "mona", at });
  });
  afterAll(end);
  afterEach(() => expect(double.faults).toEqual([]));

  test("says what it is and who may do what there", async () => {
    expect(await forge.repository()).toEqual({
      fullName: "acme/widget",
      defaultBranch: "main",
      canPush: true,
      isArchived: false,
    });
    const permissions = await Promise.all(["mona", "ted", "reader", "stranger"].map(forge.permissionOf));
    expect(permissions.map((each) => each === "admin" || each === "write")).toEqual([true, true, false, false]);
    expect(permissions.at(-1)).toBe("none");
  });

  test("shows issues with their labels and who put them there", async () => {
    const issue = { number: 1, title: "Greet", body: "Say hello", author: "mona", isOpen: true, isPull: false, labels: ["io"] };
    expect(await forge.issue(1)).toMatchObject(issue);
    expect(await forge.changedSince("2026-01-01T00:00:00Z")).toMatchObject([issue]);
    expect(await forge.changedSince("2027-01-01T00:00:00Z")).toEqual([]);
    expect(await forge.labelings(1)).toMatchObject([
      { id: "7", label: "io", by: "reader" },
      { id: "8", label: "io", by: "mona" },
    ]);
    await expect(forge.issue(99)).rejects.toMatchObject({ kind: "missing" });
  });

  test("opens one pull request, finds it, changes it, and refuses a second", async () => {
    expect(await forge.findPull({ owner: "acme", branch: "io/work" }, "main")).toBeUndefined();
    const wanted = { title: "Greet", body: "words", head: "io/work", base: "main", isDraft: true };
    const opened = await forge.openPull(wanted);
    expect(opened).toMatchObject({
      number: 2,
      state: "open",
      isDraft: true,
      base: "main",
      head: { branch: "io/work", commit: head },
    });
    expect(await forge.findPull({ owner: "acme", branch: "io/work" }, "main")).toEqual(opened);
    expect(await forge.findPull({ owner: "other", branch: "io/work" }, "main")).toBeUndefined();
    await expect(forge.openPull(wanted)).rejects.toMatchObject({
      kind: "invalid",
      message: expect.stringContaining("already exists"),
    });
    await forge.changePull(2, { body: "other words" });
    await forge.addLabels(2, ["bug"]);
    expect(await forge.pull(2)).toMatchObject({ body: "other words", labels: ["bug"] });
    repo.pulls[0]!.state = "closed";
    expect(await forge.pull(2)).toMatchObject({ state: "closed" });
    repo.pulls[0]!.mergedAt = "2026-01-03T00:00:00Z";
    expect(await forge.findPull({ owner: "acme", branch: "io/work" }, "main")).toMatchObject({ state: "merged" });
  });

  test("says whether a pull request can be merged, and of a draft nothing that is not known", async () => {
    const pull = repo.pulls[0]!;
    const before = { ...pull };
    Object.assign(pull, { state: "open", mergedAt: null, title: "WIP: Greet", draft: true, mergeable: null });
    expect(await forge.pull(2)).toMatchObject({ isDraft: true, isMergeable: null });
    Object.assign(pull, { title: "Greet", draft: false, mergeable: false });
    expect(await forge.pull(2)).toMatchObject({ isDraft: false, isMergeable: false });
    pull.mergeable = true;
    expect(await forge.pull(2)).toMatchObject({ isMergeable: true });
    Object.assign(pull, before);
  });

  test("brings reviews and their threads, and takes answers and comments", async () => {
    const at = "2026-01-02T03:04:05Z";
    repo.reviews.push({ id: 40, pull: 2, by: "ted", state: "changes", body: "not yet", commit: head, at });
    repo.threads.push({ id: 41, pull: 2, review: 40, by: "ted", body: "rename this", path: "a.ts", line: 3, at });
    expect(await forge.reviews(2)).toMatchObject([{ id: "40", verdict: "changes requested", body: "not yet", author: "ted" }]);
    repo.reviews.push({ id: 42, pull: 2, by: "mona", state: "approved", body: "", commit: head, at });
    const [thread] = await forge.threads(2);
    expect(double.calls.filter(({ what }) => what.endsWith("/reviews/42/comments"))).toEqual([]);
    expect(thread).toMatchObject({ id: "41", path: "a.ts", line: 3, body: "rename this", author: "ted", replyTo: null });
    await forge.reply(2, thread!, "done in abc");
    expect((await forge.threads(2)).at(-1)).toMatchObject({ body: "done in abc", author: "io-bot", path: "a.ts", line: 3 });
    await forge.comment(2, "said below");
    expect(await forge.comments(2)).toMatchObject([{ body: "said below", author: "io-bot" }]);
  });

  test("brings checks and the end of what a failed one said", async () => {
    const check = { commit: head, status: "completed", log: "it failed" };
    repo.checks.push(
      { id: 60, name: "build", conclusion: "success", ...check },
      { id: 61, name: "test", conclusion: "failure", ...check },
      { id: 63, name: "docs", conclusion: "neutral", ...check },
    );
    repo.checks.push({ id: 62, name: "lint", conclusion: null, ...check, status: "in_progress" });
    const checks = await forge.checks(head);
    expect(checks.map(({ name, state }) => [name, state])).toEqual([
      ["build", "passed"],
      ["test", "failed"],
      ["docs", "passed"],
      ["lint", "running"],
    ]);
    expect(await forge.log(checks[1]!)).toContain("it failed");
    const logs = double.calls.filter(({ what }) => what.startsWith("GET /logs/"));
    expect(logs.map(({ authorization }) => authorization)).toEqual(logs.map(() => undefined));
  });

  test("a renamed repository is followed, and an unchanged answer costs nothing", async () => {
    double.renamed["acme/old"] = "acme/widget";
    const old = create({ apiUrl: double.apiUrl, repo: "acme/old", token: TOKEN });
    expect(await old.repository()).toMatchObject({ fullName: "acme/widget" });
    expect(await old.repository()).toMatchObject({ fullName: "acme/widget" });
    expect(double.calls.filter(({ status }) => status === 304).length).toBeGreaterThan(0);
  });

  test("a token that is not accepted, a forge that fails for a moment, and one that asks for patience", async () => {
    const wrong = create({ apiUrl: double.apiUrl, repo: "acme/widget", token: "expired" });
    await expect(wrong.repository()).rejects.toMatchObject({ kind: "unauthorized" });
    let times = 0;
    double.instead = () => {
      times += 1;
      return times <= 2 ? { status: 502, text: "bad gateway" } : undefined;
    };
    expect(await forge.repository()).toMatchObject({ fullName: "acme/widget" });
    expect(times).toBe(3);
    times = 0;
    double.instead = () => {
      times += 1;
      return times === 1 ? { status: 429, headers: { "retry-after": "0" }, body: { message: "slow down" } } : undefined;
    };
    await forge.comment(2, "after a wait");
    expect(repo.comments.filter(({ body }) => body === "after a wait")).toHaveLength(1);
    double.instead = () => ({ status: 403, headers: { "retry-after": "3600" }, body: { message: "secondary rate limit" } });
    const limited: unknown = await forge.repository().catch((error: unknown) => error);
    expect(limited).toBeInstanceOf(ForgeError);
    expect(limited).toMatchObject({ kind: "limited", retryAt: expect.any(Number) });
    // A retry time given as a date, or by a forge that is down for a while, is also respected: only one request is made.
    const moment = new Date(Date.now() + 3_600_000).toUTCString();
    for (const status of [403, 429, 503])
      for (const after of [moment, "3600"]) {
        times = 0;
        double.instead = () => {
          times += 1;
          return { status, headers: { "retry-after": after }, body: { message: "not now" } };
        };
        const told: unknown = await forge.repository().catch((error: unknown) => error);
        expect({ status, after, told, times }).toMatchObject({ told: { kind: "limited" }, times: 1 });
        expect((told as ForgeError).retryAt).toBeGreaterThan(Date.now() + 3_000_000);
      }
    // GitHub's other ways to limit requests: an exhausted budget, and limits stated only in the message.
    const inAnHour = Math.ceil(Date.now() / 1_000) + 3_600;
    const used = { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(inAnHour) };
    for (const { headers, message, patience } of [
      { headers: used, message: "API rate limit exceeded", patience: 3_500_000 },
      { headers: {}, message: "You have exceeded a secondary rate limit. Please wait.", patience: 50_000 },
    ])
      for (const ask of [() => forge.repository(), () => forge.comment(2, "while limited")]) {
        times = 0;
        double.instead = () => {
          times += 1;
          return { status: 403, headers, body: { message } };
        };
        const told: unknown = await ask().catch((error: unknown) => error);
        expect({ message, told, times }).toMatchObject({ told: { kind: "limited" }, times: 1 });
        expect((told as ForgeError).retryAt).toBeGreaterThan(Date.now() + patience);
      }
    double.instead = () => ({ status: 403, headers: { "x-ratelimit-remaining": "99" }, body: { message: "Not yours" } });
    await expect(forge.repository()).rejects.toMatchObject({ kind: "forbidden" });
    double.instead = () => undefined;
  });

  test("what is sent and not answered is uncertain, and is not sent again", async () => {
    double.intercept = async (what, moment) => (what.startsWith("POST ") && moment === "after" ? "lose" : undefined);
    await expect(forge.comment(2, "lost answer")).rejects.toMatchObject({ kind: "uncertain" });
    double.intercept = () => undefined;
    expect(repo.comments.filter(({ body }) => body === "lost answer")).toHaveLength(1);
  });
});

test("of GitHub's checks only those that failed by themselves count as failed; what was cancelled or waits for a person does not", async () => {
  const { atTheEnd, end } = collectEndings();
  onTestFinished(end);
  const double = await startForge(gitHubDialect(), atTheEnd);
  const project = makeProject({}, true, temporaryFolder(atTheEnd));
  const commit = git(project, "rev-parse", "HEAD");
  double.add("acme/widget", project);
  const conclusions = {
    ...{ success: "passed", neutral: "passed", skipped: "passed" },
    ...{ failure: "failed", timed_out: "failed", startup_failure: "failed" },
    ...{ cancelled: "undecided", stale: "undecided", action_required: "undecided" },
  };
  const check_runs = Object.keys(conclusions).map((name, index) => ({
    ...{ id: 70 + index, name, status: "completed", conclusion: name, html_url: null },
  }));
  // GitHub sends more conclusions than its description lists.
  double.instead = (what) => (what.endsWith("/check-runs") ? { status: 200, body: { check_runs } } : undefined);
  const forge = createGitHub({ apiUrl: double.apiUrl, repo: "acme/widget", token: TOKEN });
  const found = (await forge.checks(commit)).map(({ name, state }) => [name, state]);
  expect(Object.fromEntries(found)).toEqual(conclusions);
});

test("Gitea tells a token without an administrator's rights who may write in a person's repository, and not in an organization's", async () => {
  const double = await startForge(giteaDialect());
  const repo = double.add("acme/widget", makeProject({}, true, temporaryFolder()));
  const forge = createGitea({ apiUrl: double.apiUrl, repo: "acme/widget", token: TOKEN });
  expect(await Promise.all(["mona", "io-bot", "reader"].map(forge.permissionOf))).toEqual(["write", "write", "none"]);
  repo.isOfOrganization = true;
  await expect(forge.permissionOf("mona")).rejects.toMatchObject({
    kind: "forbidden",
    message: expect.stringContaining("tells only administrators of acme/widget who may write there"),
  });
  repo.permissions["io-bot"] = "admin";
  expect(await Promise.all(["mona", "reader"].map(forge.permissionOf))).toEqual(["admin", "read"]);
});
