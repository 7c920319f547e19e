import { appendFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { RunPhase } from "../../src/protocol/runs.ts";
import { describeRun } from "../../src/swarm/tools.ts";
import { temporaryFolder } from "../support/home.ts";
import { git, NOTHING_TO_BREAK, type Script, startSwarm, task } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const SPEC = `
pipeline:
  - phase: spec
    agent: pm
    reviews:
      - {agent: pm-reviewer, maxIterations: 1, approvalKeyword: APPROVED}
      - {agent: eng-spec-reviewer, maxIterations: 1, approvalKeyword: APPROVED, onExhausted: fail}
`;
const BUILD = (qa = "continue") => `
pipeline:
  - phase: implement
    parallel: true
    agent: engineer
    reviews: [{agent: eng-code-reviewer, maxIterations: 1, approvalKeyword: APPROVED}]
    qa: {agent: tester, maxIterations: 1, approvalKeyword: ALL_PASSED, onExhausted: ${qa}}
`;

async function startWith(yaml: string, script?: Script, more: Parameters<typeof startSwarm>[0] = {}) {
  const harness = await startSwarm({ ...more, ...(script && { script }), files: { "swarm.config.yaml": yaml, ...more?.files } });
  const { swarm, project, settings } = harness;
  return { ...harness, handle: await swarm.start({ projectPath: project, issue: "Greet the user", settings }) };
}

test("a run that is stopped while a check runs was stopped, and its phase did not fail", async () => {
  const checking = join(temporaryFolder(), "checking");
  const { swarm, handle, news } = await startWith(BUILD(), undefined, {
    checks: [{ name: "slow", command: `touch '${checking}' && sleep 60`, cwd: "." }],
  });
  await until("the check", () => existsSync(checking), 30_000);
  await swarm.close();
  const run = await handle.finished;
  expect(run.status).toBe("interrupted");
  expect(news.filter(({ type }) => type === "phase.finished" || type === "stream.finished")).toEqual([]);
  expect(run.phases.map(({ name, status }) => [name, status])).toEqual([["implement", "interrupted"]]);
  expect(run.streams.map(({ status }) => status)).toEqual(["interrupted"]);
  expect(swarm.cancel(handle.id)).toMatchObject({ status: "cancelled", phases: [{ status: "cancelled" }] });
  expect(swarm.list()[0]).toMatchObject({ phases: [{ status: "cancelled" }], streams: [{ status: "cancelled" }] });
  expect(news.filter(({ type }) => type === "run.finished").map(({ data }) => data)).toEqual([
    expect.objectContaining({ id: handle.id, runId: handle.id, status: "cancelled", outcome: "cancelled" }),
  ]);
});

test("replies that held no tasks are asked for again when the failed run is resumed, and the specification is not", async () => {
  let mended = false;
  const { swarm, handle, roles, settings, model } = await startWith(
    "pipeline:\n  - {phase: spec, agent: pm}\n  - {phase: decompose, agent: pm}\n",
    ({ prompt }) =>
      prompt.includes("Reply with a JSON array")
        ? { say: mended ? JSON.stringify([task("T1", "Greet")]) : "I would rather not." }
        : undefined,
  );
  expect(await handle.finished).toMatchObject({ status: "failed", outcome: "failed" });
  expect(roles()).toHaveLength(2 + settings.maxRetries);
  const still = await (await swarm.resume(handle.id)).finished;
  expect(still.status).toBe("failed");
  expect(roles()).toHaveLength(3 + 2 * settings.maxRetries);
  mended = true;
  const asked = model.requests.length;
  expect(await (await swarm.resume(handle.id)).finished).toMatchObject({ status: "done", outcome: "approved" });
  expect(model.requests).toHaveLength(asked + 1);
  expect(JSON.stringify(model.requests.at(-1)), "it is asked afresh").not.toContain("I would rather not.");
});

test("the last review of a loop that had to approve is asked again when the failed run is resumed, and nothing before it", async () => {
  let content = false;
  const { swarm, handle, roles, model } = await startWith(SPEC, ({ role }) =>
    role === "eng-spec-reviewer" && content
      ? undefined
      : role.endsWith("reviewer")
        ? { say: "It names no greeting." }
        : undefined,
  );
  expect(await handle.finished).toMatchObject({ status: "failed", outcome: "unapproved" });
  const before = roles();
  content = true;
  const run = await (await swarm.resume(handle.id)).finished;
  expect(roles().slice(before.length)).toEqual(["eng-spec-reviewer"]);
  expect(run).toMatchObject({ status: "done", outcome: "unapproved", reason: "spec/review:pm-reviewer is exhausted" });
  const { messages } = model.requests.at(-1)!;
  expect(
    messages.filter(({ role }) => role === "assistant"),
    "a review stands alone",
  ).toEqual([]);
  await expect(swarm.resume(handle.id)).rejects.toThrow(
    /has ended \(unapproved: spec\/review:pm-reviewer is exhausted\).*nothing to resume.*new run/s,
  );
});

test("a check that stood against an approval is run again when the failed run is resumed", async () => {
  const mended = join(temporaryFolder(), "mended");
  const { swarm, handle, roles } = await startWith(BUILD("fail"), undefined, {
    checks: [{ name: "test", command: `test -f '${mended}'`, cwd: "." }],
  });
  expect(await handle.finished).toMatchObject({ status: "failed", outcome: "unapproved" });
  const before = roles();
  writeFileSync(mended, "");
  const run = await (await swarm.resume(handle.id)).finished;
  expect(run).toMatchObject({ status: "done", outcome: "approved" });
  expect(roles().slice(before.length)).not.toContain("engineer");
  expect(run.phases.map(({ status }): RunPhase["status"] => status)).toEqual(["done"]);
});

test("a run that is resumed does not take its own documents for changes of the user's", async () => {
  let hold = true;
  const { swarm, handle, roles, project } = await startWith(
    `${SPEC}${BUILD().replace("pipeline:\n", "").slice(1)}`,
    ({ role }) => (role === "engineer" && hold ? { hang: true } : undefined),
  );
  await until("the engineer", () => roles().includes("engineer"), 30_000);
  await swarm.close();
  expect((await handle.finished).notes).toEqual([NOTHING_TO_BREAK]);
  expect(git(project, "status", "--porcelain")).toContain("doc/");
  hold = false;
  expect(await (await swarm.resume(handle.id)).finished).toMatchObject({ outcome: "approved", notes: [NOTHING_TO_BREAK] });
});

test("a resume that cannot be is a conflict, and a folder for documents that is a file is a bad variable", async () => {
  const { swarm, handle, project, settings } = await startWith("pipeline:\n  - {phase: spec, agent: pm}\n");
  await expect(swarm.resume(handle.id)).rejects.toMatchObject({ trouble: "conflict" });
  await handle.finished;
  await expect(swarm.resume(handle.id)).rejects.toMatchObject({ trouble: "conflict" });
  const wrong = { ...settings, docDir: "README.md" };
  await expect(swarm.start({ projectPath: project, issue: "Greet", settings: wrong })).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(/DOC_DIR.*README\.md/),
  });
  expect(swarm.list()).toHaveLength(1);
});

test("a failed run is resumed after another run in the same repository, and the user's own worktrees stay registered", async () => {
  let mended = false;
  const { swarm, project, settings, handle } = await startWith(
    BUILD("fail"),
    ({ role }) => (role === "tester" && !mended ? { say: "It is broken." } : undefined),
    {
      files: { "src/a.cjs": "module.exports = 1;\n", "check.cjs": "require('./src/a.cjs');\n" },
      checks: [{ name: "imports", command: "node check.cjs", cwd: "." }],
    },
  );
  const theirs = join(temporaryFolder(), "theirs");
  git(project, "worktree", "add", "-q", "-b", "theirs", theirs);
  const failed = await handle.finished;
  expect(failed).toMatchObject({ status: "failed" });
  const summary = readFileSync(join(project, "doc", settings.summaryFileName), "utf8");
  expect(summary).toContain(`swarm resume ${failed.id}`);
  expect(summary).not.toContain("git merge");
  const registered = () => git(project, "worktree", "list", "--porcelain");
  const before = registered();
  expect(before).toContain(`/${failed.id}/worktrees/stream-1\n`);
  mended = true;
  const other = await (await swarm.start({ projectPath: project, issue: "Another", settings })).finished;
  expect(other).toMatchObject({ outcome: "approved" });
  await until("the other run to put its worktrees away", () => !registered().includes(other.id), 30_000);
  expect(registered()).toBe(before);
  const resumed = await (await swarm.resume(failed.id)).finished;
  expect(resumed).toMatchObject({ status: "done", outcome: "approved" });
  expect(git(theirs, "status", "--porcelain", "--branch")).toBe("## theirs");
}, 120_000);

test("documents of an earlier run are not the user's changes, whatever they are called; what the user wrote or changed there is", async () => {
  const { swarm, project, settings, handle } = await startWith(BUILD());
  const again = async () => (await swarm.start({ projectPath: project, issue: "Again", settings })).finished;
  const WARNED = /the checkout has uncommitted changes/;
  const first = await handle.finished;
  expect(first).toMatchObject({ outcome: "approved", documents: join(project, "doc") });
  expect(describeRun(first)).toContain(`Documents: ${join(project, "doc")}`);
  expect(git(project, "status", "--porcelain")).toBe("?? doc/");
  expect((await again()).notes.join("\n")).not.toMatch(WARNED);
  // A document that the user has changed since counts as theirs: its text decides, not its name.
  const [name = ""] = readdirSync(join(project, "doc"));
  appendFileSync(join(project, "doc", name), "A remark of mine.\n");
  const third = await again();
  expect(third.notes.join("\n")).toMatch(WARNED);
  expect(third.notes.join("\n")).toContain(`${join("doc", name)} was there before`);
  writeFileSync(join(project, "doc", "mine.md"), "mine\n");
  expect((await again()).notes.join("\n")).toMatch(WARNED);
  expect(readFileSync(join(project, "doc", "mine.md"), "utf8")).toBe("mine\n");
}, 120_000);
