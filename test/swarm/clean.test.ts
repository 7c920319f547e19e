import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import type { Run } from "../../src/protocol/runs.ts";
import { cleanEnvironment, endDaemonOf, providerEnvironment } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { swarm } from "../support/swarm/command.ts";
import { git, makeProject, play, type Script, taskIn, write } from "../support/swarm/index.ts";
import { ON_BRANCH } from "../support/swarm/pipelines.ts";
import { until } from "../support/until.ts";

async function scene(script?: Script) {
  const home = temporaryHome();
  const model = await scriptedModel(play(script));
  const project = makeProject({ "swarm.config.yaml": ON_BRANCH });
  const env = cleanEnvironment(home, providerEnvironment(model.url));
  const at = (...args: string[]) => swarm(args, project, env);
  const json = async <T>(...args: string[]) => {
    const ended = await at(...args, "--json");
    expect(ended).toMatchObject({ code: 0 });
    return JSON.parse(ended.stdout) as T;
  };
  const branches = () => git(project, "branch", "--list", "swarm*", "--format=%(refname:short)").split("\n").filter(Boolean);
  const sessions = (id: string) => {
    const folder = join(home, "sessions", "session-state");
    return (existsSync(folder) ? readdirSync(folder) : []).filter((name) => name.includes(id));
  };
  const folderOf = (id: string) => join(home, "runs", id);
  return { home, model, project, env, at, json, branches, sessions, folderOf };
}
type Scene = Awaited<ReturnType<typeof scene>>;
interface Cleaned {
  items: { run: string; bytes: number; worktrees: string[]; branches: string[]; kept: string[] }[];
  bytes: number;
  removed: boolean;
}

/** Starts a run with work in its worktree, and interrupts it while its reviewer thinks. */
async function interrupted({ project, env, model }: Scene): Promise<Run> {
  const asked = model.requests.length;
  const { stdout } = await swarm(["Hold it", "--json"], project, env, {
    onStart: (child) => {
      const reviewing = () => model.requests.slice(asked).length > 2;
      void until("the review", reviewing, 60_000).then(() => child.kill("SIGINT"));
    },
  });
  return JSON.parse(stdout) as Run;
}

const holding: Script = ({ role, prompt, afterTool, before }) => {
  if (role === "engineer" && !afterTool) return write(`${taskIn(prompt) || "fix"}-${before}.txt`, "work\n");
  return role === "eng-code-reviewer" && prompt.includes("Hold it") ? { hang: true } : undefined;
};

test("clean removes what runs left that ended, tells sizes, asks first, and leaves what only a run has", async () => {
  const at = await scene(holding);
  const kept = await at.json<Run>("Greet");
  const merged = await at.json<Run>("Greet", "--apply");
  expect([kept.outcome, merged.outcome, merged.applied]).toEqual(["approved", "approved", true]);
  const held = await interrupted(at);
  expect(held.status).toBe("interrupted");
  git(at.project, "update-ref", `refs/swarm/${merged.id}/left`, "HEAD");

  const looked = await at.json<Cleaned>("clean", "--dry-run");
  expect(looked.items.map(({ run }) => run).sort()).toEqual([kept.id, merged.id].sort());
  expect((await at.json<Cleaned>("clean", "--dry-run", "--older-than", "1d")).items).toEqual([]);
  expect((await at.json<Cleaned>("clean", "--dry-run", "--older-than", "0h")).items).toHaveLength(2);
  expect(await at.at("clean", "--older-than", "long")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("such as 12h, 30d"),
  });
  expect(looked).toMatchObject({ removed: false, bytes: expect.any(Number) });
  expect(looked.bytes).toBeGreaterThan(0);
  const unasked = await at.at("clean");
  expect(unasked).toMatchObject({ code: 2, stderr: expect.stringMatching(/B to remove\.[\s\S]*--yes/) });
  expect(existsSync(at.folderOf(kept.id))).toBe(true);

  const cleaned = await at.json<Cleaned>("clean", "--yes");
  expect(cleaned.items.find(({ run }) => run === kept.id)?.kept.join()).toContain(
    `the branch swarm/${kept.id}, whose commits nothing else has`,
  );
  expect(at.branches().sort()).toEqual([`swarm/${kept.id}`, `swarm/${held.id}`, `swarm/${held.id}-stream-1`].sort());
  expect([existsSync(at.folderOf(kept.id)), existsSync(at.folderOf(merged.id)), existsSync(at.folderOf(held.id))]).toEqual([
    false,
    false,
    true,
  ]);
  expect([...at.sessions(kept.id), ...at.sessions(merged.id)]).toEqual([]);
  expect(at.sessions(held.id).length).toBeGreaterThan(0);
  expect(git(at.project, "for-each-ref", "refs/swarm")).toBe("");
  expect((await at.json<Run>("show", kept.id)).outcome).toBe("approved");
  expect((await at.at("clean", "--yes")).stdout).toContain("nothing that could be removed");

  expect((await at.json<Cleaned>("clean", kept.id, "--unmerged", "--yes")).items[0]?.branches).toEqual([`swarm/${kept.id}`]);
  expect(at.branches()).not.toContain(`swarm/${kept.id}`);
}, 240_000);

test("a run that can be resumed is removed only by its name, one under way not at all; cancel and Ctrl-C offer it", async () => {
  const at = await scene(holding);
  const held = await interrupted(at);
  writeFileSync(join(at.folderOf(held.id), "worktrees", "stream-1", "unsaved.txt"), "only here\n");
  const first = await at.json<Cleaned>("clean", held.id, "--yes");
  expect(first.items[0]?.kept.join()).toMatch(/stream-1, which holds work that is committed nowhere/);
  expect(existsSync(join(at.folderOf(held.id), "worktrees", "stream-1", "unsaved.txt"))).toBe(true);
  expect(at.branches()).toContain(`swarm/${held.id}-stream-1`);
  await at.json<Cleaned>("clean", held.id, "--yes", "--unmerged");
  expect(existsSync(at.folderOf(held.id))).toBe(false);
  expect(at.branches()).toEqual([]);
  expect(git(at.project, "worktree", "list").split("\n")).toHaveLength(1);
  expect(await at.at("resume", held.id)).toMatchObject({ code: 1, stderr: expect.stringMatching(/was removed \(swarm clean\)/) });

  const asked = at.model.requests.length;
  const running = swarm(["Hold it"], at.project, at.env);
  await until("the review", () => at.model.requests.slice(asked).length > 2, 60_000);
  const { items } = await at.json<{ items: Run[] }>("list");
  const id = items[0]!.id;
  expect(await at.at("clean", id, "--yes")).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(new RegExp(`under way[\\s\\S]*swarm cancel ${id}`)),
  });
  expect((await at.json<Cleaned>("clean", "--yes")).items).toEqual([]);
  expect(await at.at("cancel", id)).toMatchObject({ stdout: expect.stringContaining(`swarm clean ${id}`) });
  await running;

  const stopped = swarm(["Hold it"], at.project, at.env, {
    onStart: (child) => {
      const before = at.model.requests.length;
      void until("the review", () => at.model.requests.slice(before).length > 2, 60_000).then(() => child.kill("SIGINT"));
    },
  });
  expect((await stopped).stdout).toMatch(/Go on with it: swarm resume (\S+) {4}Remove what it left: swarm clean \1/);
}, 240_000);

test("a clean that is killed in the middle of any deletion is ended by the next one, and nothing of the user's is touched", async () => {
  const at = await scene(holding);
  const { id } = await interrupted(at);
  const before = [git(at.project, "rev-parse", "main"), git(at.project, "status", "--porcelain", "--", ":!doc")];
  const dies = join(packageRoot, "test", "support", "swarm", "dies.mjs");
  // Without a daemon, the command itself deletes, so it can be killed while it does.
  await endDaemonOf(at.home);
  let lives = 0;
  for (let last: number | null = null; last !== 0; lives += 1) {
    expect(lives).toBeLessThan(60);
    // Each process dies after at most two deletions. What an earlier one has deleted does not count again.
    const env = { ...at.env, NODE_OPTIONS: `--import ${dies}`, DIES_BEFORE: String(1 + (lives % 3)), DIES_WITHIN: at.home };
    ({ code: last } = await swarm(["clean", id, "--yes"], at.project, env));
  }
  expect(lives).toBeGreaterThan(5);
  expect(existsSync(at.folderOf(id))).toBe(false);
  expect(at.branches()).toEqual([`swarm/${id}-stream-1`]);
  expect(at.sessions(id)).toEqual([]);
  expect(git(at.project, "worktree", "list").split("\n")).toHaveLength(1);
  expect(existsSync(join(at.project, ".git", "worktrees")) ? readdirSync(join(at.project, ".git", "worktrees")) : []).toEqual([]);
  expect([git(at.project, "rev-parse", "main"), git(at.project, "status", "--porcelain", "--", ":!doc")]).toEqual(before);
}, 240_000);

test("a branch that the user stands on, or one that a worktree of theirs does, is never deleted", async () => {
  const at = await scene(holding);
  const run = await at.json<Run>("Greet");
  const theirs = join(temporaryFolder(), "theirs");
  git(at.project, "worktree", "add", "-q", theirs, run.branch!);
  const { items } = await at.json<Cleaned>("clean", run.id, "--yes", "--unmerged");
  expect(items[0]?.kept.join()).toContain(`the branch ${run.branch}, which is checked out`);
  expect(git(theirs, "rev-parse", "--abbrev-ref", "HEAD")).toBe(run.branch);
}, 240_000);
