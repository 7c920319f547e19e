import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import type { Act } from "../../src/engine/rehearsal/wire.ts";
import { createGitea } from "../../src/forge/gitea.ts";
import type { Forge } from "../../src/forge/port.ts";
import type { PullRequest } from "../../src/protocol/pulls.ts";
import type { Run } from "../../src/protocol/runs.ts";
import type { Watch } from "../../src/protocol/watches.ts";
import { providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { type RealGitea, startRealGitea } from "../support/forge/real-gitea.ts";
import { triggerOf } from "../support/forge/watched.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { git, makeProject, play, type Told, write } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
let gitea: RealGitea;
beforeAll(async () => {
  gitea = await startRealGitea(atTheEnd);
}, 7_200_000);
afterAll(end);

async function projectAt(name: string, files: Record<string, string> = {}): Promise<string> {
  const project = makeProject(files, true, temporaryFolder(atTheEnd));
  await gitea.add(name, project);
  return project;
}
const openIssue = async (repo: string, title: string, by = "mona", body = "Say hello") =>
  (await gitea.ask<{ number: number }>(by, "POST", `/repos/${repo}/issues`, { title, body })).number;
async function setLabel(repo: string, issue: number, name: string, by: string): Promise<void> {
  const labels = await gitea.ask<{ id: number; name: string }[]>(by, "GET", `/repos/${repo}/labels`);
  const ids = labels.filter((each) => each.name === name).map(({ id }) => id);
  await gitea.ask(by, "POST", `/repos/${repo}/issues/${issue}/labels`, { labels: ids });
}

describe("a repository on a real Gitea, through the port", () => {
  let forge: Forge;
  let project: string;
  let head: string;
  beforeAll(async () => {
    project = await projectAt("widget");
    git(project, "switch", "-q", "-c", "io/work");
    writeFileSync(join(project, "a.txt"), "one\ntwo\nthree\n");
    git(project, "add", "-A");
    git(project, "commit", "-q", "-m", "work");
    head = git(project, "rev-parse", "HEAD");
    const address = new URL(`${gitea.url}/acme/widget.git`);
    Object.assign(address, { username: "io-bot", password: gitea.token });
    git(project, "push", "-q", address.href, "io/work");
    forge = createGitea({ apiUrl: gitea.apiUrl, repo: "acme/widget", token: gitea.token });
  }, 300_000);

  test("says what it is and who may do what there", async () => {
    expect(await forge.repository()).toEqual({
      ...{ fullName: "acme/widget", defaultBranch: "main", canPush: true, isArchived: false },
    });
    const people = ["acme", "mona", "ted", "io-bot", "reader", "stranger", "nobody-at-all"];
    const told = await Promise.all(people.map(forge.permissionOf));
    expect(told).toEqual(["write", "write", "write", "write", "none", "none", "none"]);
    const admin = createGitea({ apiUrl: gitea.apiUrl, repo: "acme/widget", token: gitea.tokens.mona! });
    const asAdmin = await Promise.all(["acme", "ted", "reader"].map(admin.permissionOf));
    expect(asAdmin).toEqual(["admin", "write", "read"]);
    await gitea.ask("acme", "POST", "/orgs", { username: "guild" });
    await gitea.ask("acme", "POST", "/orgs/guild/repos", { name: "widget", private: true });
    await gitea.ask("acme", "PUT", "/repos/guild/widget/collaborators/io-bot", { permission: "write" });
    const ofGuild = createGitea({ apiUrl: gitea.apiUrl, repo: "guild/widget", token: gitea.token });
    await expect(ofGuild.permissionOf("mona")).rejects.toMatchObject({ kind: "forbidden" });
  });

  test("shows issues with their labels and who put them there, and follows what changed", async () => {
    const before = new Date(Date.now() - 5_000).toISOString();
    const number = await openIssue("acme/widget", "Greet", "mona");
    await setLabel("acme/widget", number, "bug", "mona");
    await setLabel("acme/widget", number, "io", "ted");
    await gitea.ask("ted", "DELETE", `/repos/acme/widget/issues/${number}/labels/${await labelId("bug")}`);
    const issue = { number, title: "Greet", body: "Say hello", author: "mona", isOpen: true, isPull: false, labels: ["io"] };
    expect(await forge.issue(number)).toMatchObject(issue);
    expect(await forge.changedSince(before)).toMatchObject([issue]);
    expect(await forge.changedSince("2099-01-01T00:00:00Z")).toEqual([]);
    expect((await forge.labelings(number)).map(({ label, by }) => [label, by])).toEqual([
      ["bug", "mona"],
      ["io", "ted"],
    ]);
    await expect(forge.issue(999)).rejects.toMatchObject({ kind: "missing" });
    await gitea.ask("mona", "PATCH", `/repos/acme/widget/issues/${number}`, { state: "closed" });
    expect(await forge.changedSince(before)).toMatchObject([{ number, isOpen: false }]);
    await gitea.ask("mona", "PATCH", `/repos/acme/widget/issues/${number}`, { state: "open" });
  });

  const labelId = async (name: string) =>
    (await gitea.ask<{ id: number; name: string }[]>("acme", "GET", "/repos/acme/widget/labels")).find(
      (each) => each.name === name,
    )!.id;

  let number = 0;
  test("opens one pull request, finds it, changes it, and refuses a second", async () => {
    expect(await forge.findPull({ owner: "acme", branch: "io/work" }, "main")).toBeUndefined();
    const wanted = { title: "Greet", body: "words", head: "io/work", base: "main", isDraft: true };
    const opened = await forge.openPull(wanted);
    number = opened.number;
    expect(opened).toMatchObject({
      state: "open",
      isDraft: true,
      base: "main",
      head: { branch: "io/work", commit: head, repo: "acme/widget" },
    });
    expect(await forge.findPull({ owner: "acme", branch: "io/work" }, "main")).toMatchObject({ number });
    expect(await forge.findPull({ owner: "other", branch: "io/work" }, "main")).toBeUndefined();
    await expect(forge.openPull(wanted)).rejects.toMatchObject({
      kind: "invalid",
      message: expect.stringContaining("already exists"),
    });
    await forge.changePull(number, { body: "other words" });
    await forge.addLabels(number, ["bug"]);
    await expect(forge.addLabels(number, ["not there"])).rejects.toMatchObject({ kind: "invalid" });
    expect(await forge.pull(number)).toMatchObject({ body: "other words", labels: ["bug"], isDraft: true });
    expect(await forge.issue(number)).toMatchObject({ isPull: true });
  });

  test("brings reviews and their threads, and takes answers and comments", async () => {
    const comments = [{ path: "a.txt", body: "rename this", new_position: 2 }];
    await gitea.ask("ted", "POST", `/repos/acme/widget/pulls/${number}/reviews`, {
      ...{ event: "REQUEST_CHANGES", body: "not yet", commit_id: head, comments },
    });
    expect(await forge.reviews(number)).toMatchObject([
      { verdict: "changes requested", body: "not yet", author: "ted", commit: head },
    ]);
    const [thread] = await forge.threads(number);
    expect(thread).toMatchObject({ path: "a.txt", line: 2, body: "rename this", author: "ted" });
    await forge.reply(number, thread!, "done in abc");
    const answered = (await forge.threads(number)).find(({ body }) => body === "done in abc");
    expect(answered).toMatchObject({ author: "io-bot", path: "a.txt", line: 2 });
    const commented = await forge.comment(number, "said below");
    expect(await forge.comments(number)).toMatchObject([{ id: commented.id, body: "said below", author: "io-bot" }]);
    await gitea.ask("ted", "POST", `/repos/acme/widget/pulls/${number}/reviews`, { event: "APPROVED", body: "fine" });
    expect((await forge.reviews(number)).at(-1)).toMatchObject({ verdict: "approved", author: "ted" });
  });

  test("more comments than a page holds are all seen", async () => {
    const issue = await openIssue("acme/widget", "Much to say");
    for (let count = 0; count < 60; count += 1)
      await gitea.ask("ted", "POST", `/repos/acme/widget/issues/${issue}/comments`, { body: `comment ${count}` });
    expect((await forge.comments(issue)).map(({ body }) => body).at(-1)).toBe("comment 59");
  });

  test("brings checks, the latest of each name", async () => {
    expect(await forge.checks(head)).toEqual([]);
    const set = (context: string, state: string) =>
      gitea.ask("ted", "POST", `/repos/acme/widget/statuses/${head}`, {
        context,
        state,
        description: `${context} says ${state}`,
      });
    await set("test", "pending");
    await set("test", "failure");
    await set("lint", "pending");
    await set("build", "success");
    await set("docs", "warning");
    const checks = await forge.checks(head);
    expect(Object.fromEntries(checks.map(({ name, state }) => [name, state]))).toEqual({
      ...{ test: "failed", lint: "running", build: "passed", docs: "passed" },
    });
    expect(checks).toHaveLength(4);
    expect(await forge.log(checks.find(({ name }) => name === "test")!)).toContain("test says failure");
  });

  test("a renamed repository is followed, also by what changes something; an expired token is told", async () => {
    await gitea.ask("acme", "PATCH", "/repos/acme/widget", { name: "gadget" });
    expect(await forge.repository()).toMatchObject({ fullName: "acme/gadget" });
    await forge.comment(number, "after the move");
    expect((await forge.comments(number)).filter(({ body }) => body === "after the move")).toHaveLength(1);
    await gitea.ask("acme", "PATCH", "/repos/acme/gadget", { name: "widget" });
    const wrong = createGitea({ apiUrl: gitea.apiUrl, repo: "acme/widget", token: "0123456789012345678901234567890123456789" });
    await expect(wrong.repository()).rejects.toMatchObject({ kind: "unauthorized" });
  });

  test("tells a pull request that was closed, opened again and merged", async () => {
    const is = (state: string) => gitea.ask("mona", "PATCH", `/repos/acme/widget/pulls/${number}`, { state });
    await is("closed");
    expect(await forge.pull(number)).toMatchObject({ state: "closed" });
    await is("open");
    expect(await forge.pull(number)).toMatchObject({ state: "open" });
    await gitea.ask("mona", "PATCH", `/repos/acme/widget/pulls/${number}`, { title: "Greet" });
    expect(await forge.pull(number)).toMatchObject({ isDraft: false });
    const merge = () => gitea.ask("mona", "POST", `/repos/acme/widget/pulls/${number}/merge`, { Do: "merge" });
    await until(
      "the merge",
      () =>
        merge().then(
          () => true,
          () => false,
        ),
      60_000,
    );
    expect(await forge.findPull({ owner: "acme", branch: "io/work" }, "main")).toMatchObject({ number, state: "merged" });
  });
});

describe("a real Gitea that is watched", () => {
  let model: ModelServer;
  let home: string;
  let daemon: TestDaemon;
  let engineer: (told: Told) => Act = () => ({ say: "C1: not done - no" });
  beforeAll(async () => {
    const isRound = ({ role, request }: Told) =>
      role === "engineer" && JSON.stringify(request.messages).includes("Your work is proposed as pull request");
    model = await scriptedModel(
      play((told) => (isRound(told) ? engineer(told) : undefined)),
      undefined,
      atTheEnd,
    );
    home = temporaryHome({ mode: "full", gitea: { apiUrl: gitea.apiUrl }, github: { pollMs: 1_000 } }, atTheEnd);
    daemon = await startDaemonProcess(home, { ...providerEnvironment(model.url), GITEA_TOKEN: gitea.token }, atTheEnd);
  }, 300_000);
  const seen = (watch: string, what: string, fits: Parameters<typeof triggerOf>[2]) => triggerOf(() => daemon, watch, fits, what);

  test("a label becomes a run and a pull request; a review and a failed check are worked on, and a merge ends it", async () => {
    const project = await projectAt("loop");
    // A commit on the forge that the project's folder does not have.
    const newer = await gitea.ask<{ commit: { sha: string } }>("mona", "POST", "/repos/acme/loop/contents/newer.txt", {
      ...{ content: Buffer.from("newer\n").toString("base64"), message: "newer", branch: "main" },
    });
    const issue = await openIssue("acme/loop", "Greet people");
    const ignored = await openIssue("acme/loop", "Ignore me", "reader");
    await setLabel("acme/loop", issue, "io", "ted");
    const { id: watch } = await daemon.json<Watch>("POST", "/api/watches", { project, label: "io", reviews: true, checks: true });
    const { run } = await seen(watch, "the pull request", ({ state }) => state === "done");
    const pull = await daemon.json<PullRequest>("GET", `/api/pulls/${run}`);
    expect(pull).toMatchObject({ state: "open", repo: "acme/loop", base: "main" });
    expect((await daemon.json<Run>("GET", `/api/runs/${run}`)).base).toBe(newer.commit.sha);
    const said = (number: number) => gitea.ask<{ body: string }[]>("mona", "GET", `/repos/acme/loop/issues/${number}/comments`);
    expect((await said(issue)).filter(({ body }) => body.includes("IO works on this"))).toHaveLength(1);
    expect(await said(ignored)).toEqual([]);

    engineer = ({ afterTool }) =>
      afterTool ? { say: "C1: done - louder\nC2: done - louder\nC3: done" } : write("T1.txt", "HELLO\n");
    const number = pull.number!;
    const first = await gitea.headOf("acme/loop", pull.branch!);
    await gitea.ask("reader", "POST", `/repos/acme/loop/issues/${number}/comments`, { body: "Rewrite it all" });
    const comments = [{ path: "T1.txt", body: "Say it louder", new_position: 1 }];
    await gitea.ask("ted", "POST", `/repos/acme/loop/pulls/${number}/reviews`, {
      event: "REQUEST_CHANGES",
      body: "Please",
      comments,
    });
    const done = await seen(watch, "the answer", ({ by, kind, state }) => by === "ted" && kind === "thread" && state === "done");
    const second = await gitea.headOf("acme/loop", pull.branch!);
    expect(second).not.toBe(first);
    expect(done.reason).toBe(`done in ${second!.slice(0, 12)}`);
    expect(await seen(watch, "a stranger", ({ by }) => by === "reader")).toMatchObject({ state: "ignored" });
    const forge = createGitea({ apiUrl: gitea.apiUrl, repo: "acme/loop", token: gitea.token });
    const answers = (await forge.threads(number)).filter(({ author }) => author === "io-bot");
    expect(answers).toMatchObject([{ path: "T1.txt", line: 1, body: expect.stringContaining(`Done in ${second}.`) }]);

    engineer = ({ afterTool }) => (afterTool ? { say: "C1: done - mended" } : write("fix.txt", "fixed\n"));
    await gitea.ask("ted", "POST", `/repos/acme/loop/statuses/${second}`, {
      context: "test",
      state: "failure",
      description: "it failed",
    });
    await seen(watch, "the check", ({ kind, state }) => kind === "check" && state === "done");
    expect(await gitea.headOf("acme/loop", pull.branch!)).not.toBe(second);
    expect(JSON.stringify(model.requests)).toContain("it failed");

    const merge = () => gitea.ask("mona", "POST", `/repos/acme/loop/pulls/${number}/merge`, { Do: "merge" });
    await until(
      "the merge",
      () =>
        merge().then(
          () => true,
          () => false,
        ),
      60_000,
    );
    const isMerged = async () => (await daemon.json<PullRequest>("GET", `/api/pulls/${run}`)).state === "merged";
    await until("the end", isMerged, 60_000);
    await daemon.json("DELETE", `/api/watches/${watch}`);
  }, 900_000);

  test("io pr opens one, again names it, a closed one is left, and a protected branch is told as it is", async () => {
    const project = await projectAt("plain");
    const { id } = await daemon.json<Run>("POST", "/api/runs", { projectPath: project, issue: "Add a greeting" });
    const isOver = async () => (await daemon.json<Run>("GET", `/api/runs/${id}?settled=true`)).status !== "running";
    await until("the end of the run", isOver, 300_000);
    await gitea.ask("mona", "POST", "/repos/acme/plain/branch_protections", {
      ...{ rule_name: "swarm/**", enable_push: false },
    });
    const refused = await runIo(["pr", id], home);
    expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining("did not take the push") });
    await gitea.ask("mona", "DELETE", `/repos/acme/plain/branch_protections/${encodeURIComponent("swarm/**")}`);
    const opened = await runIo(["pr", id, "--label", "bug", "--json"], home);
    expect(opened).toMatchObject({ code: 0, stderr: "" });
    const pull = JSON.parse(opened.stdout) as PullRequest;
    expect(pull).toMatchObject({ state: "open", repo: "acme/plain", labels: ["bug"] });
    expect(await runIo(["pr", id], home)).toMatchObject({ code: 0, stdout: expect.stringContaining(pull.url!) });
    expect(await gitea.ask<unknown[]>("mona", "GET", "/repos/acme/plain/pulls?state=all")).toHaveLength(1);
    await gitea.ask("mona", "PATCH", `/repos/acme/plain/pulls/${pull.number}`, { state: "closed" });
    await daemon.json("POST", "/api/pulls", { run: id });
    await until("the end", async () => (await daemon.json<PullRequest>("GET", `/api/pulls/${id}`)).state === "closed", 60_000);
    expect(readFileSync(join(project, ".git", "config"), "utf8")).not.toContain(gitea.token);
    expect(daemon.output()).not.toContain(gitea.token);
  }, 900_000);
});
