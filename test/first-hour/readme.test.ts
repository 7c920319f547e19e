import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { exec } from "../../src/process/exec.ts";
import { cleanEnvironment } from "../support/daemon.ts";
import { temporaryFolder } from "../support/home.ts";
import { openTerminal } from "../support/terminal.ts";
import { until } from "../support/until.ts";

const text = readFileSync(join(packageRoot, "README.md"), "utf8");
const blocks = [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language = "", content = ""]) => ({
  language,
  content,
}));
const of = (language: string) => blocks.filter((block) => block.language === language).map(({ content }) => content);

/**
 * npm as a newcomer has it, except for `install`: the tested checkout is already installed, and installing again would break
 * other running tests. `start` and `link` are npm's own.
 */
const NPM = `#!/bin/sh
if [ "$1" = install ]; then echo "up to date"; else exec "$REAL_NPM" "$@"; fi
`;

/** A person who has never used IO, with a new home. */
function newcomer() {
  const place = temporaryFolder();
  const linked = join(place, "prefix", "bin");
  for (const folder of [join(place, "person"), join(place, "programs"), linked]) mkdirSync(folder, { recursive: true });
  const home = join(place, "person");
  const PATH = [join(place, "programs"), linked, process.env.PATH].join(delimiter);
  const npm = NPM.replace("$REAL_NPM", execFileSync("which", ["npm"], { encoding: "utf8" }).trim());
  writeFileSync(join(place, "programs", "npm"), npm, { mode: 0o755 });
  const { IO_HOME: _, ...env } = cleanEnvironment(home, {
    ...{ PATH, IO_ENGINE: "rehearsal", NO_COLOR: "1", IO_MODE: "" },
    ...{ npm_config_prefix: join(place, "prefix"), npm_config_cache: join(place, "cache"), npm_config_update_notifier: "false" },
    // Otherwise npm rebuilds the checkout when it links it.
    ...{ npm_config_ignore_scripts: "true", npm_config_audit: "false", npm_config_offline: "true" },
  });
  return { place, home, env, linked };
}

/** The output that a block promises: `…` stands for what differs between runs, and a line of it for any lines. */
function promised(lines: readonly string[]): RegExp {
  const escaped = (line: string) => line.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("…", ".*");
  return new RegExp(`^${lines.map((line) => (line === "…" ? "(?:.*\\n)*?" : `${escaped(line)}\\n`)).join("")}\\n*$`);
}

test("every block of the README is one that this file runs", () => {
  expect(new Set(blocks.map(({ language }) => language))).toEqual(new Set(["sh", "console"]));
  expect([of("sh").length, of("console").length]).toEqual([1, 3]);
});

test("the two commands: a chat opens and answers, says how to type io, and then io is a command", async () => {
  const { place, home, env, linked } = newcomer();
  onTestFinished(async () => void (await exec("bash", ["-c", "node bin/io.js stop"], { cwd: packageRoot, env })));
  const [first = "", second = ""] = of("sh")[0]!.trim().split("\n");
  const terminal = await openTerminal(place, ["bash", "--norc", "-c", `cd '${packageRoot}' && ${first}\nsleep 100`], env);
  await until("the hint", async () => /npm link\)/.test((await terminal.screen()).replaceAll("\n", "")), 60_000);
  await terminal.type("hello");
  await terminal.press("Enter");
  await until("an answer", async () => (await terminal.screen()).includes("Hello. I am IO"), 60_000);
  expect(await exec("bash", ["-c", second], { cwd: packageRoot, env })).toMatchObject({ code: 0 });
  const status = await exec("io", ["status"], { cwd: home, env });
  expect(status).toMatchObject({ code: 0, stdout: expect.stringContaining("1 done") });
  expect((await exec("swarm", ["list"], { cwd: linked, env })).code).toBe(0);
});

describe("what to do next, with its real output", () => {
  for (const content of of("console")) {
    const commands = content.split(/^\$ /m).slice(1);
    test(`$ ${commands[0]!.split("\n")[0]}`, async () => {
      const { home, env, linked } = newcomer();
      for (const name of ["io", "swarm"]) symlinkSync(join(packageRoot, "bin", `${name}.js`), join(linked, name));
      onTestFinished(async () => void (await exec("io", ["stop"], { cwd: home, env })));
      let cwd = home;
      for (const command of commands) {
        const [line = "", ...expected] = command.replace(/\n$/, "").split("\n");
        const where = join(linked, "where");
        const { code, output } = await exec("bash", ["-c", `${line}\ncode=$?; pwd > '${where}'; exit $code`], { cwd, env });
        cwd = readFileSync(where, "utf8").trim();
        expect(`$ ${line}\n${output}`).toMatch(promised([`$ ${line}`, ...expected]));
        expect([line, code]).toEqual([line, 0]);
      }
      // All of it ran in the default mode.
      expect((await exec("io", ["config", "get", "mode"], { cwd: home, env })).stdout).toBe("auto\n");
    });
  }
});
