import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exitCodeOf } from "../../src/swarm/run/swarm.ts";
import { temporaryFolder } from "../support/home.ts";
import { git, type Script, sh, startSwarm, task, taskIn, write } from "../support/swarm/index.ts";

const SPEC = (more = "") => `
pipeline:
  - phase: spec
    agent: pm
    reviews:
      - {agent: pm-reviewer, maxIterations: 2, approvalKeyword: approved${more}}
`;
const BUILD = ({ reviews = "", qa = "", implement = "", root = "" } = {}) => `
${root}
pipeline:
  - phase: implement
    parallel: true
    agent: engineer
${implement}
    reviews: [${reviews}]
${qa}
`;
const CODE = "{agent: eng-code-reviewer, maxIterations: 2, approvalKeyword: APPROVED}";
const QA = "    qa: {agent: tester, maxIterations: 2, approvalKeyword: ALL_PASSED}";

async function runWith(yaml: string, script: Script = () => undefined, more: Parameters<typeof startSwarm>[0] = {}) {
  const harness = await startSwarm({ ...more, script, files: { "swarm.config.yaml": yaml, ...more?.files } });
  const run = await (
    await harness.swarm.start({ projectPath: harness.project, issue: "Greet the user", settings: harness.settings })
  ).finished;
  return {
    ...harness,
    run,
    loops: run.loops.map(({ agent, outcome, reviews, revisions }) => ({ agent, outcome, reviews, revisions })),
  };
}

test("a rejected specification is revised with the findings, and its reviewer sees its earlier findings", async () => {
  const { run, loops, prompts } = await runWith(SPEC(), ({ role, before }) =>
    role === "pm-reviewer" && before === 0 ? { say: "1. Say who is greeted.\n\nNOT APPROVED" } : undefined,
  );
  expect(loops).toEqual([{ agent: "pm-reviewer", outcome: "approved", reviews: 2, revisions: 1 }]);
  expect(run).toMatchObject({ outcome: "approved", branch: null });
  expect(prompts("pm")[1]).toContain("Say who is greeted.");
  expect(prompts("pm-reviewer")[0]).not.toContain("Your earlier findings");
  expect(prompts("pm-reviewer")[1]).toMatch(/Greet the user[\s\S]*Your earlier findings[\s\S]*Say who is greeted/);
});

test("when the revisions are used up, the last one is reviewed once more, and the run ends unapproved with exit code 3", async () => {
  const { run, loops, roles, project } = await runWith(SPEC(), ({ role }) =>
    role === "pm-reviewer" ? { say: "It cannot be APPROVED yet." } : undefined,
  );
  expect(loops).toEqual([{ agent: "pm-reviewer", outcome: "exhausted", reviews: 3, revisions: 2 }]);
  expect(roles()).toEqual(["pm", "pm-reviewer", "pm", "pm-reviewer", "pm", "pm-reviewer"]);
  expect([run.status, run.outcome, exitCodeOf(run)]).toEqual(["done", "unapproved", 3]);
  expect(readFileSync(join(project, "doc", "swarm-summary.md"), "utf8")).toMatch(
    /unapproved.*is exhausted[\s\S]*It cannot be APPROVED yet/,
  );
});

test("a loop that must not run out stops the run", async () => {
  const { run } = await runWith(SPEC(", onExhausted: fail"), ({ role }) =>
    role === "pm-reviewer" ? { say: "I approve of this: it is approved." } : undefined,
  );
  expect([run.status, run.outcome, exitCodeOf(run)]).toEqual(["failed", "unapproved", 3]);
  expect(run.reason).toMatch(/pm-reviewer did not approve/);
});

test("a reviewer that answers nothing is asked again up to MAX_RETRIES times, and has then not approved", async () => {
  const { run, loops, roles } = await runWith(SPEC(), ({ role }) => (role === "pm-reviewer" ? { empty: true } : undefined), {
    env: { MAX_RETRIES: "1" },
  });
  expect(loops).toEqual([{ agent: "pm-reviewer", outcome: "failed", reviews: 1, revisions: 0 }]);
  expect(roles()).toEqual(["pm", "pm-reviewer", "pm-reviewer"]);
  expect(exitCodeOf(run)).toBe(3);
});

test("a reviewer that is silent longer than SESSION_TIMEOUT_MS has not approved", async () => {
  const { loops } = await runWith(SPEC(), ({ role }) => (role === "pm-reviewer" ? { hang: true } : undefined), {
    env: { MAX_RETRIES: "1", SESSION_TIMEOUT_MS: "1200" },
  });
  expect(loops).toMatchObject([{ outcome: "failed" }]);
});

test("an agent that answers at the second try is taken at its word, and an error of the first author ends the run", async () => {
  const good = await runWith(SPEC(), ({ role, before }) =>
    role === "pm-reviewer" && before === 0 ? { status: 400 } : undefined,
  );
  expect(good.run.outcome).toBe("approved");
  const bad = await runWith(SPEC(), ({ role }) => (role === "pm" ? { status: 400 } : undefined), { env: { MAX_RETRIES: "1" } });
  expect([bad.run.status, exitCodeOf(bad.run)]).toEqual(["failed", 1]);
  expect(bad.run.reason).toMatch(/spec: pm gave no specification/);
});

test("a command of a step's first attempt is not run again by its second, which is told of it", async () => {
  const marker = join(temporaryFolder(), "marker");
  const { run, prompts } = await runWith(BUILD({ qa: QA }), ({ role, afterTool, before }) => {
    if (role !== "tester") return undefined;
    if (!afterTool) return sh(`echo ran >> ${marker}`);
    return before === 1 ? { status: 400 } : { say: "ALL_PASSED" };
  });
  expect(readFileSync(marker, "utf8")).toBe("ran\n");
  expect(prompts("tester").at(-1)).toMatch(/cut off[\s\S]*echo ran/);
  expect(run.loops.find(({ agent }) => agent === "tester")).toMatchObject({ outcome: "approved" });
});

test("a reviewer's question goes to the clarifying agent, and the answer to the author", async () => {
  const yaml = SPEC(", clarificationKeyword: ASK_PM, clarificationAgent: designer");
  const { loops, prompts, roles } = await runWith(yaml, ({ role, before }) => {
    if (role === "pm-reviewer" && before === 0) return { say: "Which language?\n\nASK_PM" };
    if (role === "designer") return { say: "Welsh, please." };
    return undefined;
  });
  expect(loops).toMatchObject([{ outcome: "approved", reviews: 2 }]);
  expect(roles()).toEqual(["pm", "pm-reviewer", "designer", "pm", "pm-reviewer"]);
  expect(prompts("designer")[0]).toContain("Which language?");
  expect(prompts("pm")[1]).toContain("Welsh, please.");
});

test("a revision for one reviewer voids what another has approved, and it looks again", async () => {
  const yaml = `
pipeline:
  - phase: spec
    agent: pm
    reviews:
      - {agent: pm-reviewer, maxIterations: 1, approvalKeyword: APPROVED}
      - {agent: eng-spec-reviewer, maxIterations: 1, approvalKeyword: APPROVED}
`;
  const { loops, roles, run } = await runWith(yaml, ({ role, before, prompt }) => {
    if (role === "eng-spec-reviewer" && before === 0) return { say: "No." };
    if (role === "pm" && prompt.includes("Revise")) return { say: "A better spec" };
    return undefined;
  });
  expect(roles()).toEqual(["pm", "pm-reviewer", "eng-spec-reviewer", "pm", "eng-spec-reviewer", "pm-reviewer"]);
  expect(loops).toMatchObject([
    { outcome: "approved", reviews: 2 },
    { outcome: "approved", reviews: 2 },
  ]);
  expect(new Set(run.loops.map(({ approved }) => approved)).size).toBe(1);
});

test("frontend tasks bring the design phase, its questions are answered, and only frontend streams get the design", async () => {
  const yaml = `
pipeline:
  - {phase: decompose, agent: pm}
  - phase: design
    condition: hasFrontendTasks
    agent: designer
    clarificationAgent: pm
    reviews: [{agent: design-reviewer, maxIterations: 1, approvalKeyword: APPROVED, clarificationKeyword: CLARIFICATION_NEEDED, clarificationAgent: pm}]
  - {phase: implement, parallel: true, agent: engineer}
`;
  const { run, roles, prompts, project } = await runWith(yaml, ({ role, prompt, before }) => {
    if (role === "pm" && prompt.includes("Reply with a JSON array"))
      return { say: JSON.stringify([task("T1", "[FRONTEND] A page"), task("T2", "A table")]) };
    if (role === "pm") return { say: "Blue." };
    if (role === "designer" && before === 0) return { say: "Which colour?\nCLARIFICATION_NEEDED" };
    if (role === "designer") return { say: "THE-DESIGN in blue" };
    if (role === "design-reviewer" && before === 0) return { say: "How blue?\nCLARIFICATION_NEEDED" };
    return undefined;
  });
  expect(run).toMatchObject({ outcome: "approved" });
  expect(roles().slice(0, 9)).toEqual([
    "pm",
    "designer",
    "pm",
    "designer",
    "design-reviewer",
    "pm",
    "designer",
    "design-reviewer",
    "engineer",
  ]);
  const [page, table] = [
    prompts("engineer").find((prompt) => taskIn(prompt) === "T1")!,
    prompts("engineer").find((prompt) => taskIn(prompt) === "T2")!,
  ];
  expect(page).toContain("THE-DESIGN");
  expect(table).not.toContain("THE-DESIGN");
  expect(table).not.toContain("A page");
  expect(readFileSync(join(project, "doc", "designer.md"), "utf8")).toContain("THE-DESIGN");
});

test("an engineer's question is answered in its own session, with the keyword of the file", async () => {
  const { run, prompts, model } = await runWith(
    BUILD({ implement: "    clarificationAgent: pm\n    clarificationKeyword: HELP_ME" }),
    ({ role, before, afterTool }) => {
      if (role === "pm") return { say: "In Welsh." };
      if (role === "engineer" && afterTool) return { say: "Done; no HELP_ME is needed for this." };
      return role === "engineer" && before === 0 ? { say: "Which language?\n\nHELP_ME" } : undefined;
    },
  );
  expect(run.outcome).toBe("approved");
  expect(prompts("engineer")[1]).toContain("In Welsh.");
  expect(prompts("pm")).toHaveLength(1);
  const second = model.requests.find((request) => JSON.stringify(request.messages.at(-1)).includes("In Welsh."))!;
  expect(JSON.stringify(second.messages)).toContain("HELP_ME");
});

test("a code reviewer's question goes to the clarifying agent, and the answer to the engineer", async () => {
  const asking =
    "{agent: eng-code-reviewer, maxIterations: 1, approvalKeyword: APPROVED, clarificationKeyword: ASK_PM, clarificationAgent: pm}";
  const { loops, roles, prompts } = await runWith(BUILD({ reviews: asking }), ({ role, before }) => {
    if (role === "eng-code-reviewer" && before === 0) return { say: "Is Welsh meant?\n\nASK_PM" };
    return role === "pm" ? { say: "Yes, Welsh." } : undefined;
  });
  expect(roles()).toEqual(["engineer", "eng-code-reviewer", "pm", "engineer", "eng-code-reviewer"]);
  expect(loops).toMatchObject([{ outcome: "approved", reviews: 2, revisions: 1 }]);
  expect(prompts("pm")[0]).toMatch(/eng-code-reviewer asks[\s\S]*Is Welsh meant\?/);
  expect(prompts("engineer")[1]).toMatch(/Clarification[\s\S]*Yes, Welsh\./);
});

test("a fix for the tester voids the code review, which is done again on the new tree", async () => {
  const { run, roles, loops, prompts } = await runWith(
    BUILD({ reviews: CODE, qa: QA }),
    ({ role, before, prompt, afterTool }) => {
      if (role === "tester" && before === 0) return { say: "1. It does not greet." };
      if (role === "engineer" && !afterTool && prompt.includes("Findings of tester")) return write("greeting.txt", "hello\n");
      return undefined;
    },
  );
  expect(roles()).toEqual(["engineer", "eng-code-reviewer", "tester", "engineer", "tester", "eng-code-reviewer"]);
  expect(loops).toMatchObject([
    { agent: "eng-code-reviewer", outcome: "approved", reviews: 2 },
    { agent: "tester", outcome: "approved", reviews: 2 },
  ]);
  expect(run.loops.every(({ approved }) => approved === run.tree)).toBe(true);
  expect(prompts("eng-code-reviewer")[1]).toMatch(/\+hello[\s\S]*line that holds only: APPROVED/);
});

test("a tester's word does not stand against the runtime's own record of a failing check", async () => {
  const { run, loops, prompts } = await runWith(
    BUILD({ qa: QA, root: 'checks: ["test -f done.txt"]' }),
    ({ role, prompt, afterTool }) =>
      role === "engineer" && !afterTool && prompt.includes("Findings of tester") ? write("done.txt", "") : undefined,
  );
  expect(loops).toMatchObject([{ agent: "tester", outcome: "approved", reviews: 2, revisions: 1 }]);
  expect(prompts("engineer")[1]).toMatch(/does not bear out ALL_PASSED[\s\S]*test -f done\.txt.*exit code 1/);
  expect(prompts("tester")[0]).toMatch(/test -f done\.txt.*exit code 1/);
  expect(run.outcome).toBe("approved");
  expect(run.evidence.map(({ exitCode }) => exitCode)).toEqual([1, 0]);
});

test("a check that still fails at the end is exit code 3, whatever the reviewers say", async () => {
  const { run } = await runWith(BUILD({ reviews: CODE, root: 'checks: ["echo broken >&2; exit 7"]' }));
  expect([run.outcome, exitCodeOf(run)]).toEqual(["unapproved", 3]);
  expect(run.reason).toMatch(/the check "echo broken >&2; exit 7" fails/);
  expect(run.evidence.at(-1)).toMatchObject({
    exitCode: 7,
    tail: "broken\n",
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    tree: run.tree,
  });
});

test("another model reviews everything together, its findings are fixed, and the same model for both leaves the phase out", async () => {
  const yaml = `${BUILD()}
  - {phase: cross-model-review, condition: differentReviewModel, agent: cross-model-reviewer, fixAgent: engineer, maxIterations: 1, approvalKeyword: APPROVED}
`;
  const script: Script = ({ role, before, prompt, afterTool }) => {
    if (role === "cross-model-reviewer" && before === 0) return { say: "1. Two lines, please." };
    if (role === "engineer" && !afterTool && prompt.includes("Two lines, please")) return write("T1.txt", "one\ntwo\n");
    return undefined;
  };
  const { run, model, project, roles } = await runWith(yaml, script, {
    env: { PRIMARY_MODEL: "writer", REVIEW_MODEL: "critic" },
  });
  expect(run.outcome).toBe("approved");
  expect(git(project, "show", `${run.branch}:T1.txt`)).toBe("one\ntwo");
  expect(new Set(model.requests.map(({ model: name }) => name))).toEqual(new Set(["writer", "critic"]));
  expect(roles()).toEqual(["engineer", "cross-model-reviewer", "engineer", "cross-model-reviewer"]);
  const same = await runWith(yaml, script, { env: { PRIMARY_MODEL: "one", REVIEW_MODEL: "one" } });
  expect(same.run).toMatchObject({ outcome: "approved", loops: [{ outcome: "skipped" }] });
  expect(same.roles()).toEqual(["engineer"]);
});

test("a reply that is no list of tasks is asked for again with what was wrong, and in the end fails the run", async () => {
  const yaml = "pipeline:\n  - {phase: decompose, agent: pm}\n";
  const good = await runWith(yaml, ({ role, before }) =>
    role === "pm" ? { say: before === 0 ? "Well, first the database." : '["Only this"]' } : undefined,
  );
  expect(good.run.outcome).toBe("approved");
  expect(good.prompts("pm")[1]).toMatch(/could not be used: it holds no JSON array[\s\S]*first the database/);
  const bad = await runWith(yaml, () => ({ say: "[]" }), { env: { MAX_RETRIES: "1" } });
  expect(bad.run).toMatchObject({ status: "failed", reason: expect.stringMatching(/no list of tasks: the JSON array is empty/) });
});

test("every agent gets the tools of its place, its instructions as system message, and its own model", async () => {
  const yaml = `
agents: {engineer: roles/engineer.md}
${BUILD({ reviews: CODE, qa: QA })}`;
  const { model, run } = await runWith(
    yaml,
    ({ role, afterTool }) => {
      if (role === "I build.") return afterTool ? { say: "done" } : sh("echo hi > T1.txt");
      if (role !== "eng-code-reviewer" || afterTool) return undefined;
      return { call: [{ tool: "file_ops", args: { operation: "search", query: "hi", glob: "T*.txt" } }] };
    },
    { files: { "roles/engineer.md": "---\nmodel: special\n---\nI build." } },
  );
  expect(run.outcome).toBe("approved");
  const tools = (role: RegExp) => {
    const request = model.requests.find(({ messages }) => role.test(JSON.stringify(messages[0])))!;
    return { names: request.tools?.map((tool) => tool.function.name), text: JSON.stringify(request.tools), model: request.model };
  };
  expect(tools(/I build\./)).toMatchObject({ names: ["shell", "file_ops"], model: "special" });
  expect(tools(/You review code/).names).toEqual(["file_ops"]);
  expect(tools(/You review code/).text).not.toContain('"write"');
  const seen = model.requests
    .filter(({ messages }) => /You review code/.test(JSON.stringify(messages[0])))
    .map(({ messages }) => messages);
  expect(JSON.stringify(seen)).toContain("T1.txt\\n1:hi");
  expect(tools(/You are the tester/).names).toEqual(["shell", "file_ops"]);
  expect(tools(/You are the tester/).text).not.toContain('"write"');
});

test("DOC_DIR, SUMMARY_FILE_NAME and AGENTS_DIR are obeyed, and the summary goes to GitHub's page too", async () => {
  const page = join((await import("../support/home.ts")).temporaryFolder(), "page.md");
  const { project, run, home, model } = await runWith(
    SPEC(),
    ({ role }) => (role === "A pm of our own." ? { say: "Their spec" } : undefined),
    {
      env: { DOC_DIR: "out/docs", SUMMARY_FILE_NAME: "end.md", AGENTS_DIR: "team" },
      files: { "team/pm.md": "A pm of our own." },
      parts: { env: { PATH: process.env.PATH, GITHUB_STEP_SUMMARY: page } },
    },
  );
  expect(readFileSync(join(project, "out/docs/pm.md"), "utf8")).toMatch(/^# Specification by pm\n\n_20\d\d-.*_\n\nTheir spec\n$/);
  expect(readFileSync(join(project, "out/docs/end.md"), "utf8")).toContain("Outcome: approved");
  expect(readFileSync(page, "utf8")).toContain("Outcome: approved");
  expect(existsSync(join(home, "runs", run.id, "documents", "end.md"))).toBe(true);
  expect(JSON.stringify(model.requests[0]?.messages[0])).toContain("A pm of our own.");
});
