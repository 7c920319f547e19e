import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { count } from "../support/chat.ts";
import { cleanEnvironment, endDaemonOf, providerEnvironment } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { makeProject, play, type Script, sh, task, taskIn, write } from "../support/swarm/index.ts";
import { ON_BRANCH } from "../support/swarm/pipelines.ts";
import { forbiddenIn, openTerminal, type TerminalOptions, uncoloured } from "../support/terminal.ts";
import { until } from "../support/until.ts";

interface Opened extends TerminalOptions {
  files?: Record<string, string>;
  config?: Record<string, unknown>;
  flags?: string;
}

/** Types `swarm` into a shell in a terminal, on a scripted model. */
async function openSwarm(script: Script, { files = {}, config = {}, flags = "", ...size }: Opened = {}) {
  const model = await scriptedModel(play(script));
  const home = temporaryHome(config);
  onTestFinished(() => endDaemonOf(home));
  const project = makeProject(files);
  const env = cleanEnvironment(home, { ...providerEnvironment(model.url), PS1: "ready> ", HISTFILE: "" });
  const terminal = await openTerminal(home, ["sh", "-c", `cd '${project}' && exec bash --norc --noprofile -i`], env, size);
  await terminal.sees("ready>");
  await terminal.enter(`'${process.execPath}' '${join(packageRoot, "bin", "swarm.js")}' run 'Do two things' ${flags}`);
  return { terminal, model };
}

const items = (stream: string) => Array.from({ length: 30 }, (_, at) => `- **${stream}** did thing ${at + 1}\n`);

test.each([
  [60, 20],
  [200, 60],
])(
  "at %ix%i a run shows its phases and streams live, prints what has ended once, over resizes, and leaves the terminal as it was",
  { timeout: 150_000 },
  async (columns, rows) => {
    const { terminal } = await openSwarm(
      ({ role, prompt, afterTool }) => {
        if (role === "pm" && prompt.includes("JSON array"))
          return { say: JSON.stringify([task("T1", "The first part"), task("T2", "The second part")]) };
        if (role !== "engineer") return undefined;
        const id = taskIn(prompt);
        return afterTool ? { say: items(id), gapMs: 60 } : write(`${id}.txt`, `${id}\n`);
      },
      { flags: "-v", columns, rows },
    );
    await terminal.sees(/▸ spec/, 60_000);
    await terminal.sees(/\S stream 1 {2}\S+.* {2}\d\.\d s/, 60_000);
    await terminal.sees(/stream 2 {2}/);
    await terminal.sees("• T1 did thing 5", 60_000);
    await terminal.resize(columns - 15, rows - 4);
    await terminal.sees(/• T\d did thing 15/, 60_000);
    await terminal.resize(columns + 10, rows);
    await terminal.sees(/Run r_\w+: done[\s\S]*ready>/, 90_000);
    await terminal.enter("echo the shell is $((40 + 2))");
    await terminal.sees("the shell is 42");
    const all = await terminal.scrollback();
    for (const line of ["▸ spec", "▸ implement", "✓ spec/draft:pm", "stream 1: ", "stream 2: ", "stream 1 done", "✓ cross-model"])
      expect([line, count(all, line)]).toEqual([line, 1]);
    for (const id of ["T1", "T2"])
      for (let at = 1; at <= 30; at += 1) expect([id, at, count(all, `• ${id} did thing ${at}\n`)]).toEqual([id, at, 1]);
    expect(all).not.toMatch(/\*\*|Ctrl-C stops/);
    const bytes = uncoloured(terminal.bytes());
    for (const line of ["▸ spec", "▸ implement", "✓ spec/draft:pm", "stream 1: "])
      expect([line, count(bytes, line)]).toEqual([line, 1]);
    // The shell turns on its own bracketed paste; IO's other modes must be off.
    expect(forbiddenIn(terminal.bytes())).toEqual([]);
    expect(bytes.lastIndexOf("?1004l")).toBeGreaterThan(bytes.lastIndexOf("?1004h"));
  },
);

const asksOnce: Script = ({ role, afterTool }) =>
  role === "engineer" && !afterTool ? sh("echo once >> counted.txt") : undefined;

test("a question of a run is answered in its terminal, and what is typed before it goes nowhere", {
  timeout: 120_000,
}, async () => {
  const { terminal } = await openSwarm(asksOnce, {
    files: { "swarm.config.yaml": ON_BRANCH },
    config: { approvals: "effects" },
  });
  await terminal.sees(/▸ implement/, 60_000);
  await terminal.type("impatient");
  await terminal.sees(/wants to use shell[\s\S]*echo once >> counted\.txt[\s\S]*Allow it\? y or n[\s\S]*\n› *\n/, 60_000);
  expect(await terminal.screen()).not.toContain("impatient");
  await terminal.type("yx");
  await terminal.press("BSpace");
  await terminal.sees(/› y\n/);
  await terminal.press("Enter");
  await terminal.sees(/is allowed\./);
  await terminal.sees(/Run r_\w+: done[\s\S]*ready>/, 60_000);
});

test("Ctrl-C ends a run in good order and says how it goes on; Ctrl-Z stops it and fg brings it back", {
  timeout: 120_000,
}, async () => {
  const { terminal } = await openSwarm(({ role }) => (role === "engineer" ? { stall: "I begin" } : undefined), {
    files: { "swarm.config.yaml": ON_BRANCH },
    flags: "-v",
  });
  await terminal.sees("I begin", 60_000);
  await terminal.press("C-z");
  await terminal.sees(/Stopped[\s\S]*ready>/);
  expect(await terminal.screen()).not.toContain("Ctrl-C stops");
  await terminal.enter("fg");
  await terminal.sees("Ctrl-C stops");
  await terminal.press("C-c");
  await terminal.sees(/Run r_\w+: interrupted[\s\S]*resume r_\w+[\s\S]*ready>/, 60_000);
  await terminal.enter("echo exit $?");
  await terminal.sees("exit 130");
  await until("nothing live to be left", async () => !(await terminal.screen()).includes("Ctrl-C stops"));
});
