import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { git, sh, task, write } from "../support/swarm/index.ts";
import { live, runOf, scene } from "../support/swarm/lives.ts";
import { both, engineer, runStreams, split, YAML } from "../support/swarm/streams.ts";

const log = (project: string, range: string, format = "%s") =>
  git(project, "log", "--reverse", `--format=${format}`, range).split("\n");
const commits =
  (...messages: string[]) =>
  (project: string) => {
    git(project, "config", "user.name", "Ada");
    git(project, "config", "user.email", "ada@example.org");
    for (const message of messages) git(project, "commit", "-q", "--allow-empty", "-m", message);
  };
const signed = (subject: string) => `${subject}\n\nSigned-off-by: Ada <ada@example.org>`;

const twoStreams = both(
  split(task("T1", "[FRONTEND] Add a button"), task("T2", "Add a word")),
  engineer((id, prompt) => {
    if (!prompt.includes("conflicts with work")) return write("list.txt", `start\n${id}\n`);
    return sh("grep -v '^[<=>]\\{7\\}' list.txt > n; mv n list.txt");
  }),
);

function writeHook(project: string, folder: string, text: string): void {
  mkdirSync(join(project, folder), { recursive: true });
  writeFileSync(join(project, folder, "commit-msg"), `#!/bin/sh\n${text}\n`);
  chmodSync(join(project, folder, "commit-msg"), 0o755);
}

test("one stream is one commit on the base, in the project's own words, and is merged as it stands", async () => {
  const { run, project, swarm } = await runStreams(
    both(
      split(task("T1", "Mend the greeting")),
      ({ role, before }) => (role === "eng-code-reviewer" && before === 0 ? { say: "Say more." } : undefined),
      engineer((_, prompt) => write(prompt.includes("Say more") ? "more.txt" : "greeting.txt", "hello\n")),
    ),
    {
      apply: true,
      prepare: (folder) => {
        git(folder, "commit", "-q", "--amend", "-m", signed("chore: start"));
        commits(...["feat: one", "fix: two", "feat: three"].map(signed))(folder);
        writeHook(folder, ".git/hooks", "exit 1");
      },
    },
  );
  expect(run).toMatchObject({ outcome: "approved", applied: true });
  expect(git(project, "log", "-1", "--format=%an %ce%n%B", "main")).toBe(
    `Ada ada@example.org\n${signed("fix: mend the greeting")}`,
  );
  expect(git(project, "rev-list", "--count", "main")).toBe("5");
  expect(git(project, "rev-parse", "main", `${run.branch}`).split("\n")[0]).toBe(git(project, "rev-parse", `${run.branch}`));
  expect(git(project, "rev-parse", "main^{tree}")).toBe(run.tree);
  expect(run.notes.filter((note) => note.includes("commit-msg hook"))).toEqual([
    expect.stringMatching(/\.git\/hooks\/commit-msg was not run on the branch's commits; with commitMsgHook: true/),
  ]);
  await swarm.close();
  expect(git(project, "branch", "--list", "swarm/*").split("\n")).toHaveLength(1);
  expect(log(project, `main~1..refs/swarm/${run.id}/history`).length).toBeGreaterThan(2);
});

test("several streams are one commit, which lists them", async () => {
  const { run, project } = await runStreams(twoStreams, { files: { "list.txt": "start\n" } });
  expect(run.outcome).toBe("approved");
  expect(git(project, "log", "--format=%P%n%B", `main..${run.branch}`)).toBe(
    `${git(project, "rev-parse", "main")}\nDo it\n\n- Add a button\n- Add a word`,
  );
  expect(git(project, "rev-parse", `${run.branch}^{tree}`)).toBe(run.tree);
  expect(run.notes.join("\n")).not.toContain("hook");
});

test("with commits: merge each stream is one commit of its own work, and what reviews changed later is one more", async () => {
  const { run, project } = await runStreams(
    both(
      ({ role, before }) => (role === "cross-model-reviewer" && before === 0 ? { say: "Mend it." } : undefined),
      ({ role, prompt, afterTool }) =>
        role === "engineer" && !afterTool && prompt.includes("Mend it.") ? write("mended.txt", "yes\n") : undefined,
      twoStreams,
    ),
    {
      files: { "list.txt": "start\n" },
      yaml: `${YAML("", "primaryModel: scripted\nreviewModel: another\ncommits: merge\nconcurrency: 2")}  - {phase: cross-model-review, agent: cross-model-reviewer, fixAgent: engineer, maxIterations: 1, approvalKeyword: APPROVED}\n`,
      prepare: commits("feat: one", "fix: two", "feat: three"),
    },
  );
  expect(run.outcome).toBe("approved");
  const subjects = log(project, `main..${run.branch}`);
  expect(subjects.filter((subject) => !subject.startsWith("Merge "))).toEqual([
    expect.stringMatching(/^feat: add a (?:button|word)$/),
    expect.stringMatching(/^feat: add a (?:button|word)$/),
    "feat: address the findings of the reviews",
  ]);
  expect(new Set(subjects).size).toBe(subjects.length);
  expect(subjects.join("\n")).not.toMatch(/stream|T\d|r_|FRONTEND/);
  for (const subject of subjects.filter((each) => each.startsWith("Merge ")))
    expect(subject).toMatch(/^Merge "Add a \w+" into the branch$/);
  for (const commit of log(project, `main..${run.branch}`, "%H"))
    expect(git(project, "show", "--first-parent", "--format=", "--name-only", commit)).toMatch(/^(?:list|mended)\.txt$/);
  expect(git(project, "rev-parse", `${run.branch}^{tree}`)).toBe(run.tree);
});

test("the commit-msg hook that a person agreed to is run behind the wall, may change the message, and what it refuses is noted", async () => {
  const hook = (text: string) => (project: string) => {
    git(project, "config", "core.hooksPath", "hooks");
    writeHook(project, "hooks", text);
  };
  const yaml = YAML("", "commitMsgHook: true");
  const script = split(task("T1", "Add a greeting"));
  const changed = await runStreams(script, {
    yaml,
    prepare: hook('echo "Change-Id: I1" >> "$1"; echo seen > "$(dirname "$0")/seen"; :'),
  });
  expect(git(changed.project, "log", "-1", "--format=%B", changed.run.branch!)).toBe("Add a greeting\nChange-Id: I1");
  expect(git(changed.project, "status", "--porcelain", "--untracked-files=all")).not.toContain("seen");
  expect(changed.run.notes.join("\n")).not.toContain("hook");
  const refused = await runStreams(script, { yaml, prepare: hook("echo no ticket; exit 1") });
  expect(git(refused.project, "log", "-1", "--format=%s", refused.run.branch!)).toBe("Add a greeting");
  expect(refused.run.notes.join("\n")).toMatch(/commit-msg hook .* does not accept a message of the branch: no ticket/);
});

test("in a history of merges the words are learnt from what was merged, and a hook that writes the message anew has the last word", async () => {
  const { run, project } = await runStreams(
    both(
      split(task("T1", "Mend the greeting")),
      engineer(() => write("greeting.txt", "hello\n")),
    ),
    {
      yaml: YAML("", "commitMsgHook: true"),
      prepare: (folder) => {
        for (const [index, message] of [":sparkles: One", ":bug: Two", ":memo: Three"].entries()) {
          git(folder, "checkout", "-q", "-b", `topic-${index}`);
          commits(message)(folder);
          git(folder, "checkout", "-q", "main");
          git(folder, "merge", "-q", "--no-ff", "-m", `Merge pull request #${index} from ada/topic`, `topic-${index}`);
        }
        writeHook(folder, ".git/hooks", 'sed -i "1s/$/ (checked)/" "$1"');
      },
    },
  );
  expect(run.outcome).toBe("approved");
  expect(log(project, `main..${run.branch}`)).toEqual([":bug: Mend the greeting (checked)"]);
  expect(run.notes.filter((note) => note.includes("commit-msg hook"))).toEqual([]);
});

test("a run that is killed before and after its branch gets its last commits ends with the same one commit", async () => {
  const { home, project, base } = await scene();
  const kill = (killOn: string, killKey: string) => ({ ...base, killOn, killKey, killAt: 1, resume: runOf(home).row?.id });
  expect(await live(kill("step.finished", "run/commits"))).toMatchObject({ signal: "SIGKILL" });
  const branch = `swarm/${runOf(home).row!.id}`;
  expect(log(project, `main..${branch}`).length).toBeGreaterThan(1);
  // As if it had been killed a moment later, with only one of the two refs moved.
  git(project, "update-ref", `refs/${branch}/history`, branch);
  expect(await live(kill("step.started", "run/summary"))).toMatchObject({ signal: "SIGKILL" });
  const commit = git(project, "rev-parse", branch);
  const { code, said } = await live({ ...base, resume: runOf(home).row!.id });
  expect([code, JSON.parse(said)]).toMatchObject([
    0,
    { outcome: "approved", tree: git(project, "rev-parse", `${branch}^{tree}`) },
  ]);
  expect(git(project, "rev-parse", branch)).toBe(commit);
  expect(log(project, `main..${branch}`, "%s|%P")).toEqual([`Do two things|${git(project, "rev-parse", "main")}`]);
});
