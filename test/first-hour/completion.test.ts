import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exec } from "../../src/process/exec.ts";
import { cleanEnvironment, runIo } from "../support/daemon.ts";
import { temporaryFolder } from "../support/home.ts";
import { ensureProgram } from "../support/program.ts";
import { swarm } from "../support/swarm/command.ts";
import { openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

async function script(shell: string): Promise<{ folder: string; file: string }> {
  const folder = temporaryFolder();
  const { code, stdout, stderr } = await runIo(["completion", shell], folder);
  expect([code, stderr]).toEqual([0, ""]);
  const file = join(folder, `io.${shell}`);
  writeFileSync(file, stdout);
  return { folder, file };
}

/** Some completions of each line, the same in every shell. */
const LINES: [line: string, some: string[], none?: string[]][] = [
  ["io squ", ["squad"]],
  ["io squad ad", ["add-agent"]],
  ["io squad add-agent --t", ["--tier"]],
  ["io completion ", ["bash", "zsh", "fish"]],
  ["io setup --engine ", ["copilot", "ollama", "provider", "rehearsal"]],
  ["io swarm re", ["resume"]],
  ["swarm --a", ["--apply"]],
  ["swarm sh", ["show"]],
  ["io --dae", ["--daemon"]],
];

test("bash completes commands, their options and their values", async () => {
  await ensureProgram("bash");
  const { file } = await script("bash");
  for (const [line, wanted] of LINES) {
    const words = line.split(" ");
    const run = `source '${file}'; COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _io; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = await exec("bash", ["--norc", "-c", run]);
    expect([line, stdout.trim().split("\n").sort(), stderr]).toEqual([line, [...wanted].sort(), ""]);
  }
});

test("fish completes the same, with what each is for", async () => {
  await ensureProgram("fish");
  const { file, folder } = await script("fish");
  for (const [line, wanted] of LINES) {
    const { stdout, stderr } = await exec("fish", ["--no-config", "-c", `source '${file}'; complete -C '${line}'`], {
      env: { PATH: process.env.PATH, HOME: folder },
    });
    const found = stdout
      .trim()
      .split("\n")
      .map((each) => each.split("\t")[0]);
    expect([line, found.sort(), stderr]).toEqual([line, [...wanted].sort(), ""]);
  }
  const described = await exec("fish", ["--no-config", "-c", `source '${file}'; complete -C 'io backu'`], {
    env: { PATH: process.env.PATH, HOME: folder },
  });
  expect(described.stdout).toMatch(/^backup\tput the whole data folder into one file/);
});

test("zsh completes as it is typed", async () => {
  await ensureProgram("zsh");
  const { file, folder } = await script("zsh");
  const terminal = await openTerminal(folder, ["zsh", "-f", "-i"], { PATH: process.env.PATH, HOME: folder, PS1: "ready> " });
  await terminal.type(`autoload -U compinit && compinit -u && source '${file}' && clear && echo loaded`);
  await terminal.press("Enter");
  await until("the script to be loaded", async () => /^loaded/m.test(await terminal.screen()));
  for (const [line, wanted] of LINES) {
    await terminal.press("C-u");
    await terminal.type(line);
    await terminal.press("Tab");
    const last = line.split(" ").at(-1)!;
    const head = line.slice(0, line.length - last.length);
    await until(`"${line}" to be completed to ${wanted}`, async () => {
      const screen = await terminal.screen();
      if (wanted.length === 1) return screen.includes(`${head}${wanted[0]}`);
      return wanted.every((word) => new RegExp(`^(?:.*\\s)?${word}(?:\\s|$)`, "m").test(screen.replaceAll(/^ready>.*$/gm, "")));
    });
  }
});

test("a mistyped command is told with the nearest one, and swarm begins nothing by mistake", async () => {
  const folder = temporaryFolder();
  expect(await runIo(["squda"], folder)).toMatchObject({ code: 2 });
  expect(await runIo(["bakup"], folder)).toMatchObject({ code: 2, stderr: expect.stringContaining("Did you mean backup?") });
  expect(await runIo(["completion", "tcsh"], folder)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("bash, zsh, fish"),
  });
  const env = cleanEnvironment(folder, { IO_ENGINE: "rehearsal" });
  const mistyped = await swarm(["shwo"], folder, env);
  expect(mistyped).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/"shwo" is no command of swarm\. Did you mean ".*show"\?.*run "shwo"/),
  });
  expect(await swarm(["bogus"], folder, env)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('"bogus" is no command of swarm.'),
  });
});
