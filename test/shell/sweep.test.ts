import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { findDestructiveCommand } from "../../src/shell/destructive-commands.ts";
import { readPlainLine } from "../../src/shell/plain-line.ts";
import { createRandom, lineThatMayRun, type Random, runLines, shellLine } from "../support/shell-sweep.ts";

/** This many different lines that the reader can parse into commands. */
function readableLines(random: Random, count: number): string[] {
  const lines = new Set<string>();
  while (lines.size < count) {
    const line = shellLine(random);
    if (readPlainLine(line)) lines.add(line);
  }
  return [...lines];
}

/** For each line: what the shell did that the reader did not predict. Leaves out lines without surprises. */
async function surprises(shell: "bash" | "dash", lines: readonly string[]): Promise<unknown[]> {
  const recorded = await runLines(shell, lines);
  return lines.flatMap((line, index) => {
    const { started, wroteFile } = recorded[index]!;
    const claimed = readPlainLine(line)!.map(({ words }) => JSON.stringify(words));
    const seen = started.map((words) => JSON.stringify(words));
    const left = [...claimed];
    const unclaimed = seen.filter((each) => {
      const at = left.indexOf(each);
      if (at >= 0) left.splice(at, 1);
      return at < 0;
    });
    // Every program succeeds, so only commands after "||" may not run, and programs given by a path that does not exist.
    const isLeftOut = left.length > 0 && !line.includes("||") && !left.some((each) => each.includes("/"));
    return unclaimed.length > 0 || isLeftOut || wroteFile ? [{ line, claimed, seen, wroteFile }] : [];
  });
}

test("bash starts nothing but what the reader says, and writes no file", { timeout: 240_000 }, async () => {
  const seed = randomInt(2 ** 31);
  console.log(`shell sweep: fresh seed ${seed}`);
  const lines = [...readableLines(createRandom(25), 45_000), ...readableLines(createRandom(seed), 5_000)];
  expect(lines.length).toBeGreaterThanOrEqual(50_000);
  expect((await surprises("bash", lines)).slice(0, 5), `fresh seed ${seed}`).toEqual([]);
});

test("a shell without bash's extras starts nothing else either", { timeout: 240_000 }, async () => {
  // Programs whose names dash cannot define as functions cannot be watched.
  const isWatched = (line: string) => readPlainLine(line)!.every(({ words }) => /^(?:git|ls|x|y|z|npm)$/.test(words[0]!));
  const lines = readableLines(createRandom(26), 10_000).filter(isWatched);
  expect(lines.length).toBeGreaterThan(1_000);
  expect((await surprises("dash", lines)).slice(0, 5)).toEqual([]);
});

test("whatever odd way a shell finds to a command that deletes a home, the seat belt finds it too", {
  timeout: 240_000,
}, async () => {
  const random = createRandom(27);
  const lines = Array.from({ length: 1_500 }, () => lineThatMayRun("rm -rf /q", random));
  const recorded = await runLines("bash", lines, ["rm", "git", "ls", "y", "z", "npm", "echo", "kill", "exit"], true);
  const deleting = lines.filter((_, index) =>
    recorded[index]!.started.some((words) => words.slice(0, 3).join(" ") === "rm -rf /q"),
  );
  const isFound = (line: string) =>
    findDestructiveCommand(line, { cwd: "/srv/project", keep: ["/q"], env: { HOME: "/home/me" } }) !== undefined;
  expect(deleting.length).toBeGreaterThan(200);
  expect(deleting.filter((line) => !isFound(line))).toEqual([]);
});
