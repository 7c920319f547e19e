import { resolve } from "node:path";
import { z } from "zod";
import { oneLine } from "../../lib/quoted.ts";
import { plainEnvironment } from "../../process/environment.ts";
import { exec } from "../../process/exec.ts";
import type { Wrap } from "../../process/sandbox.ts";
import type { Check } from "../../project/commands.ts";
import { CheckEvidence } from "../../protocol/runs.ts";
import { type Journal, RunStopped } from "../run/journal.ts";
import { checksKey } from "../run/keys.ts";

export interface ChecksDeps {
  journal: Journal;
  /** The commands of the pipeline file; without them the project's own are looked for. */
  configured: readonly string[] | undefined;
  findChecks: (folder: string) => Promise<Check[]>;
  signal: AbortSignal;
  deadlineMs: number;
  /** Keeps checks, which run code that agents wrote, away from secrets. */
  wrap: Wrap;
  /** Takes secrets out of what they print. */
  clean: (text: string) => string;
  env: NodeJS.ProcessEnv;
  now: () => Date;
}

const TAIL = 4_000;

/** Runs the checks once a tree: the same tree has the same evidence in whichever folder it is. */
export function createChecks({ journal, configured, findChecks, signal, deadlineMs, wrap, clean, env, now }: ChecksDeps) {
  const environment = { ...plainEnvironment(env), CI: env.CI ?? "true" };
  const seen = new Map<string, CheckEvidence[]>();

  async function runOne(check: Check, folder: string, tree: string): Promise<CheckEvidence> {
    const cwd = resolve(folder, check.cwd);
    const [program, ...args] = await wrap(["/bin/sh", "-c", check.command], cwd);
    const result = await exec(program, args, {
      cwd,
      env: environment,
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
      tail: clean(output).slice(-TAIL),
      sha256,
      bytes,
      durationMs: Math.round(durationMs),
      tree,
      at: now().toISOString(),
    };
  }

  return {
    /** `after` is called once the checks have ended, to clean up what they left in the tree. */
    async run(at: {
      prefix: string;
      phase: string;
      stream?: number;
      folder: string;
      tree: string;
      after?: () => Promise<unknown>;
    }): Promise<CheckEvidence[]> {
      const head = {
        key: checksKey(at.prefix, at.tree),
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
      const facts = `- \`${oneLine(each.command, 300).replaceAll("`", "'")}\`: ${end}, ${each.durationMs} ms, output sha256 ${each.sha256.slice(0, 16)} (${each.bytes} bytes), tree ${each.tree.slice(0, 12)}`;
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
