import { execFileSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { noUsage, type UsageSummary } from "../../../src/protocol/usage.ts";
import { readInviteUrl } from "../../../src/workers/cluster/invitation.ts";
import { joinCluster } from "../../../src/workers/cluster/join.ts";
import { asked, decide } from "../../support/approvals.ts";
import { startCluster, type TestCluster } from "../../support/cluster.ts";
import { type HostileHands, hostileHands } from "../../support/dispatch/hostile.ts";
import { collectEndings, temporaryFolder } from "../../support/home.ts";
import { delegate, ended, project, squadWith } from "../../support/squads.ts";
import { until } from "../../support/until.ts";

const { atTheEnd, end: putAway } = collectEndings();
afterAll(putAway);
let cluster: TestCluster;
let access: Awaited<ReturnType<typeof joinCluster>>;
beforeAll(async () => {
  cluster = await startCluster(atTheEnd, { config: { dispatch: "workers" }, cluster: { leaseMs: 600_000 } });
  const { url, code } = await cluster.invite();
  const invitation = readInviteUrl(url);
  access = await joinCluster({ invitation, code, name: "mallory", labels: [], capacity: 4, version: "0.1.0" });
}, 120_000);

interface Job extends Awaited<ReturnType<HostileHands["take"]>> {
  mallory: HostileHands;
  folder: string;
  task: string;
  /** Asks the daemon something during a turn. Returns its answer. */
  wants(data: object): Promise<{ state: string; data: { value: unknown } }>;
}

/** Creates a task and lets the hostile worker take it. */
async function taken(slug: string, safety: Record<string, unknown> = {}): Promise<Job> {
  const { daemon } = cluster;
  const folder = project({ "a.txt": "a\n" }, atTheEnd);
  await squadWith(daemon, folder, slug, ["Engineer"]);
  await daemon.json("PATCH", `/api/squads/${slug}`, { isolation: "worktree", safety });
  const { id } = await delegate(daemon, slug, { task: "Work" });
  const mallory = await hostileHands(access.access, access.daemon);
  const job = await mallory.take();
  let number = 0;
  const wants: Job["wants"] = async (data) => {
    number += 1;
    const own = number;
    return until("an answer", async () => {
      const answer = (await mallory.ask("ask", { lease: job.lease, number: own, data: { value: data } })) as { state: string };
      return answer.state === "pending" ? undefined : (answer as { state: string; data: { value: unknown } });
    });
  };
  return { ...job, mallory, folder, task: id, wants };
}

const call = (id: string, tool: string, args: unknown) => ({ kind: "call", call: id, tool, args, said: "" });
const result = (more: object = {}) => {
  const turn = { outcome: "done", text: "Done.", usage: noUsage(), tools: [], served: [] };
  return { state: "done", value: turn, tree: null, commit: null, usage: noUsage(), ...more };
};

test("a call that a worker makes never runs on the daemon's host, whatever it is called, in which order, and who allowed it", async () => {
  const { wants, mallory, lease, task } = await taken("calls", { approvals: "effects" });
  const mark = join(temporaryFolder(), "ran-here");
  const shell = { command: `touch ${mark}` };
  // The first call waits for a person; the second has the same id and would end at once.
  const first = wants(call("c1", "shell", shell));
  const [question] = await asked(cluster.daemon);
  const second = wants(call("c1", "file_ops", { nonsense: true }));
  const third = wants(call("c2", "file_ops", { nonsense: true }));
  expect((await third).data.value).toMatchObject({ answer: { ok: false } });
  await decide(cluster.daemon, question!.id, { decision: "allow" });
  expect((await first).data.value).toMatchObject({ do: shell });
  expect((await second).data.value).toMatchObject({ do: shell });
  const outcome = { kind: "outcome", call: "c1", ok: true, refused: false, text: "exit 0" };
  expect((await wants(outcome)).data.value).toMatchObject({ ok: true });
  // If reported again, it is answered from the record.
  await wants(outcome);
  for (const tool of [
    "config_update",
    // The agent could call this tool on the daemon's host, but no worker may read what people said.
    "conversation_search",
    "web_fetch",
    "github",
    "skill_install",
    "squad_delete",
    "swarm_start",
    "__proto__",
    "SHELL",
  ])
    expect((await wants(call(`x-${tool}`, tool, shell))).data.value).toMatchObject({
      answer: { ok: false, text: expect.stringContaining("There is no tool") },
    });
  // The daemon's own tools run here, by the rules of the job.
  const page = { path: "general/from-a-worker", content: "# Hello\n" };
  const written = wants(call("w", "wiki_write", page));
  const [write] = await asked(cluster.daemon);
  expect(write).toMatchObject({ tool: "wiki_write", owner: { kind: "task", id: task } });
  await decide(cluster.daemon, write!.id, { decision: "deny" });
  expect((await written).data.value).toMatchObject({ answer: { ok: false } });
  expect(existsSync(mark)).toBe(false);
  expect(await mallory.ask("end", { lease, outcome: { value: result() } })).toEqual({ state: "accepted" });
  expect(await ended(cluster.daemon, task)).toMatchObject({ worker: "mallory" });
}, 90_000);

test("what a worker says it used is written down if it can be, and ends its job if it cannot; nothing is below zero", async () => {
  const { daemon } = cluster;
  /** The usage of the task alone, without the message that reports its end, which also uses a model. */
  const usedBy = async (task: string) =>
    (await daemon.json<UsageSummary>("GET", "/api/usage?by=task")).items.find(({ name }) => name === task) ?? noUsage();
  const good = { model: "m", inputTokens: 10, outputTokens: 5, cacheReadTokens: 2, durationMs: 3 };
  const bad = [
    ...[{ inputTokens: -1 }, { outputTokens: 1.5 }, { cacheReadTokens: 1e300 }, { inputTokens: null }, { outputTokens: "5" }],
    ...[{ durationMs: -1 }, { model: "" }],
  ];
  for (const [at, wrong] of bad.entries()) {
    const { mallory, job, lease, task } = await taken(`usage-${at}`);
    const record = (seq: number, data: object) =>
      mallory.ask("record", { lease, job: job.id, seq, body: { kind: "usage", data } });
    if (at > 0) expect(await record(1, { ...good, ...wrong })).toEqual({ state: "lost" });
    else {
      expect(await record(1, good)).toEqual({ state: "told" });
      // The same event again is not counted twice.
      expect(await record(1, good)).toEqual({ state: "told" });
      expect(await record(2, { ...good, ...wrong })).toEqual({ state: "lost" });
      // What was spent before the interruption is still counted.
      expect(await record(3, good)).toEqual({ state: "told" });
    }
    const failed = await ended(daemon, task);
    expect(failed).toMatchObject({ status: "failed", error: { message: expect.stringContaining("that cannot be") } });
    const calls = at > 0 ? 0 : 2;
    expect(await usedBy(task)).toMatchObject({ calls, inputTokens: 10 * calls });
  }
}, 120_000);

test("what a worker adds up itself does not count: a task's usage is what was written down call by call", async () => {
  const { mallory, job, lease, task } = await taken("sums");
  const data = { model: "m", inputTokens: 10, outputTokens: 5, cacheReadTokens: 2, durationMs: 3 };
  await mallory.ask("record", { lease, job: job.id, seq: 1, body: { kind: "usage", data } });
  const claimed = { calls: 0, inputTokens: 0, outputTokens: 0, cacheReadTokens: 0 };
  await mallory.ask("end", { lease, outcome: { value: result({ usage: claimed }) } });
  expect(await ended(cluster.daemon, task)).toMatchObject({ usage: { calls: 1, inputTokens: 10 } });
});

test("files that a worker brings are plain: no submodule, nothing of git's, no commit of another history", async () => {
  const { daemon } = cluster;
  for (const [at, kind] of ["submodule", "gitmodules", "git-folder", "other-history", "other-bytes", "good"].entries()) {
    const { mallory, lease, folder, task, wants } = await taken(`files-${at}`);
    const code = (await wants({ kind: "code", known: [] })).data.value as { bundle: { name: string; sha256: string } };
    const bytes = await mallory.fetch(lease, code.bundle.name);
    expect(createHash("sha256").update(bytes).digest("hex")).toBe(code.bundle.sha256);
    const { commit, bundle } = crafted(kind, bytes);
    const name = `left-${lease}`;
    expect(await mallory.ask("put", { lease, name, at: 0 }, bundle)).toEqual({ have: bundle.length, lost: false });
    const sha256 = createHash("sha256")
      .update(kind === "other-bytes" ? Buffer.from("x") : bundle)
      .digest("hex");
    const value = result({ commit, tree: commit, bundle: { name, sha256, size: bundle.length } });
    expect(await mallory.ask("end", { lease, outcome: { value } })).toEqual({ state: "accepted" });
    const task_ = await ended(daemon, task);
    if (kind === "good") expect(git(folder, "ls-tree", "-r", "--name-only", `io/${task}`)).toContain("new.txt");
    else {
      expect(task_).toMatchObject({ status: "failed", error: { message: expect.stringMatching(/refused|not what was sent/) } });
      // A branch with nothing on it is taken away.
      await until("the empty branch to be gone", () => git(folder, "branch", "--list", `io/${task}`) === "");
    }
  }
}, 120_000);

test("a commit's name, an epoch, a lease and a blob that cannot be are refused by the daemon", async () => {
  for (const [at, more] of [
    { commit: "--upload-pack=x" },
    { commit: "HEAD" },
    { tree: "../x" },
    { bundle: { name: "x", sha256: "short", size: 1 } },
  ].entries()) {
    const { mallory, lease, task } = await taken(`forms-${at}`);
    expect(await mallory.ask("beat", { lease: "../../x" })).toEqual({ state: "lost" });
    expect(await mallory.ask("beat", { lease: randomUUID() })).toEqual({ state: "lost" });
    expect(await mallory.ask("end", { lease, outcome: { value: result(more) } })).toEqual({ state: "refused" });
    expect(await ended(cluster.daemon, task)).toMatchObject({ status: "failed" });
  }
}, 60_000);

const AS = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.protectNTFS=false", "-c", "core.protectHFS=false"];
const git = (cwd: string, ...args: string[]) => execFileSync("git", [...AS, ...args], { cwd, encoding: "utf8" }).trim();

/** A commit as a worker might send it, based on the code that it received. */
function crafted(kind: string, bytes: Uint8Array): { commit: string; bundle: Buffer } {
  const folder = temporaryFolder();
  const [repo, file] = [join(folder, "repo"), join(folder, "code.bundle")];
  writeFileSync(file, bytes);
  mkdirSync(repo);
  git(repo, "init", "-q");
  const base = git(repo, "bundle", "unbundle", file).split(" ")[0]!;
  git(repo, "checkout", "-q", "--detach", base);
  const blob = git(repo, "hash-object", "-w", "a.txt");
  const index = (mode: string, object: string, path: string) =>
    git(repo, "update-index", "--add", "--cacheinfo", `${mode},${object},${path}`);
  if (kind === "submodule") index("160000", base, "inner");
  else if (kind === "gitmodules") index("100644", blob, ".gitmodules");
  else index("100644", blob, "new.txt");
  let tree = git(repo, "write-tree");
  if (kind === "git-folder") {
    const inner = execFileSync("git", ["mktree"], { cwd: repo, input: `100644 blob ${blob}\tconfig\n`, encoding: "utf8" }).trim();
    tree = execFileSync("git", ["mktree"], { cwd: repo, input: `040000 tree ${inner}\t.GIT\n`, encoding: "utf8" }).trim();
  }
  const parents = kind === "other-history" ? [] : ["-p", base];
  const commit = git(repo, "commit-tree", tree, ...parents, "-m", "left");
  git(repo, "update-ref", "refs/heads/left", commit);
  const made = join(folder, "left.bundle");
  git(repo, "bundle", "create", "-q", made, "refs/heads/left", ...(kind === "other-history" ? [] : [`^${base}`]));
  return { commit, bundle: readFileSync(made) };
}
