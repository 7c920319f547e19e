import { resolve } from "node:path";
import { z } from "zod";
import { plainEnvironment } from "../../process/environment.ts";
import { exec } from "../../process/exec.ts";
import type { Wrap } from "../../process/sandbox.ts";
import { CheckEvidence } from "../../protocol/runs.ts";
import { type Journal, RunStopped } from "../run/journal.ts";

/** One of a project's own commands that show whether it works. */
export interface Check {
  name: string;
  /** A line for the shell, from the project's files and never from a request. */
  command: string;
  /** Where it stands, relative to the project. */
  cwd: string;
}

export interface ChecksDeps {
  journal: Journal;
  /** The commands of the pipeline file; without them they are looked for. */
  configured: readonly string[] | undefined;
  findChecks: (folder: string) => Promise<Check[]>;
  signal: AbortSignal;
  deadlineMs: number;
  /** Keeps what runs the model's own code from what a model may not see. */
  wrap: Wrap;
  env: NodeJS.ProcessEnv;
  now: () => Date;
}

const TAIL = 4_000;

/** Runs the checks on one tree, once: the same tree again has the same evidence, wherever it stands. */
export function createChecks({ journal, configured, findChecks, signal, deadlineMs, wrap, env, now }: ChecksDeps) {
  const clean = { ...plainEnvironment(env), CI: env.CI ?? "true" };
  const seen = new Map<string, CheckEvidence[]>();

  async function runOne(check: Check, folder: string, tree: string): Promise<CheckEvidence> {
    const cwd = resolve(folder, check.cwd);
    const [program, ...args] = await wrap(["/bin/sh", "-c", check.command], cwd);
    const result = await exec(program, args, {
      cwd,
      env: clean,
      deadlineMs,
      signal,
      maxOutput: TAIL * 2,
    });
    const { code, ending, output, sha256, bytes, durationMs } = result;
    return {
      name: check.name,
      command: check.command,
      exitCode: code,
      ending,
      tail: output.slice(-TAIL),
      sha256,
      bytes,
      durationMs: Math.round(durationMs),
      tree,
      at: now().toISOString(),
    };
  }

  return {
    /** `after` runs when the checks have ended, to put away what they left in the tree. */
    async run(at: {
      prefix: string;
      phase: string;
      stream?: number;
      folder: string;
      tree: string;
      after?: () => Promise<unknown>;
    }): Promise<CheckEvidence[]> {
      const head = {
        key: `${at.prefix}/checks/${at.tree.slice(0, 12)}`,
        kind: "checks" as const,
        phase: at.phase,
        stream: at.stream ?? null,
      };
      const known = seen.get(at.tree);
      if (known) return known;
      const found = await journal.step(z.array(CheckEvidence), head, { tree: at.tree, configured }, async () => {
        const checks = configured?.map((command) => ({ name: command, command, cwd: "." })) ?? (await findChecks(at.folder));
        const evidence: CheckEvidence[] = [];
        for (const check of checks) {
          evidence.push(await runOne(check, at.folder, at.tree));
          if (signal.aborted) throw new RunStopped("the run was stopped");
        }
        if (checks.length > 0) await at.after?.();
        return { value: evidence, verdict: checks.length === 0 ? "no checks" : passed(evidence) ? "passed" : "failed" };
      });
      seen.set(at.tree, found);
      return found;
    },
  };
}
export type Checks = ReturnType<typeof createChecks>;

export function passed(evidence: readonly CheckEvidence[]): boolean {
  return evidence.every((each) => each.ending === "exited" && each.exitCode === 0);
}

/** The record as agents and people read it. */
export function describeEvidence(evidence: readonly CheckEvidence[], tailLength = 2_000): string {
  if (evidence.length === 0) return "No checks were found in this project, so none were run.";
  return evidence
    .map((each) => {
      const end = each.ending === "exited" ? `exit code ${each.exitCode}` : each.ending;
      const facts = `- \`${each.command}\`: ${end}, ${each.durationMs} ms, output sha256 ${each.sha256.slice(0, 16)} (${each.bytes} bytes), tree ${each.tree.slice(0, 12)}`;
      const tail = each.tail.trim().slice(-tailLength);
      return each.exitCode === 0 && tailLength > 0 ? facts : tail && tailLength > 0 ? `${facts}\n${fence(tail)}` : facts;
    })
    .join("\n");
}

/** A code block that its own content cannot close. */
export function fence(text: string, language = ""): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map((match) => match[0].length));
  const marks = "`".repeat(longest + 1);
  return `${marks}${language}\n${text}\n${marks}`;
}
