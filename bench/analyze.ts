import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { analyzeProject } from "../src/squads/analyze.ts";
import { walledGit } from "../test/support/git.ts";

const FILES = 50_000;
const ROUNDS = 5;
const LIMIT = 3;

export interface AnalyzeResult {
  files: number;
  lines: number;
  baselineMs: number;
  analyzeMs: number;
  ratio: number;
  worstRatio: number;
  limit: number;
  passed: boolean;
}

/** Compares analysing 50,000 small files with `git ls-files` and counting their lines, alternating in the same run. */
export async function run(): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "io-bench-analyze-"));
  const home = mkdtempSync(join(tmpdir(), "io-bench-home-"));
  const { git } = walledGit(home);
  try {
    fill(root);
    countLines(root);
    await analyzeProject(git, root);
    const rounds: { baseline: number; analyze: number; lines: number }[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const baseline = countLines(root);
      const started = performance.now();
      const { size } = await analyzeProject(git, root);
      rounds.push({ baseline, analyze: performance.now() - started, lines: size.lines });
    }
    const ratios = rounds.map(({ baseline, analyze }) => analyze / baseline);
    const result: AnalyzeResult = {
      files: FILES,
      lines: rounds[0]!.lines,
      baselineMs: median(rounds.map(({ baseline }) => baseline)),
      analyzeMs: median(rounds.map(({ analyze }) => analyze)),
      ratio: median(ratios),
      worstRatio: Math.max(...ratios),
      limit: LIMIT,
      passed: median(ratios) <= LIMIT,
    };
    console.log(`analyze: ${result.files} files, ${result.lines} lines of code`);
    console.log(`  git ls-files and wc -l  ${result.baselineMs.toFixed(0)} ms`);
    console.log(`  squad_analyze           ${result.analyzeMs.toFixed(0)} ms`);
    console.log(
      `  ratio ${result.ratio.toFixed(2)} (worst ${result.worstRatio.toFixed(2)}), at most ${LIMIT}: ${result.passed ? "held" : "NOT HELD"}`,
    );
    if (!result.passed) process.exitCode = 1;
  } finally {
    for (const folder of [root, home]) rmSync(folder, { recursive: true, force: true });
  }
}

/** A monorepo of 500 packages with a hundred small files each. */
function fill(root: string): void {
  for (let folder = 0; folder < 500; folder += 1) {
    const source = join(root, "packages", `p${folder}`, "src");
    mkdirSync(source, { recursive: true });
    writeFileSync(join(source, "..", "package.json"), JSON.stringify({ name: `p${folder}`, scripts: { test: "vitest run" } }));
    for (let file = 1; file < 100; file += 1) {
      const lines = Array.from(
        { length: 10 + ((folder + file) % 40) },
        (_, line) => `export const value${line} = ${folder * file + line};\n`,
      );
      writeFileSync(join(source, `file${file}.ts`), lines.join(""));
    }
  }
  execFileSync("git", ["init", "-q"], { cwd: root });
  execFileSync("git", ["add", "-A"], { cwd: root });
}

function countLines(root: string): number {
  const started = performance.now();
  execFileSync("sh", ["-c", "git ls-files -z | xargs -0 wc -l"], { cwd: root, maxBuffer: 1_000_000_000 });
  return performance.now() - started;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
