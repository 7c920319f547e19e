import { resolve } from "node:path";
import { z } from "zod";
import type { CheckEnd } from "../../away/words.ts";
import { oneLine } from "../../lib/quoted.ts";
import type { Redactor } from "../../lib/redact.ts";
import { projectEnvironment } from "../../process/environment.ts";
import { exec } from "../../process/exec.ts";
import type { Stand, Wrap } from "../../process/sandbox.ts";
import type { Check } from "../../project/commands.ts";
import { CheckEvidence } from "../../protocol/runs.ts";
import { type Journal, RunStopped } from "../run/journal.ts";
import { checksKey, runKeys } from "../run/keys.ts";
import { excuseOf, isGreen } from "./baseline.ts";

export interface ChecksDeps {
  journal: Journal;
  /** The commands of the pipeline file; without them the project's own are looked for. */
  configured: readonly string[] | undefined;
  findChecks: (folder: string) => Promise<Check[]>;
  signal: AbortSignal;
  deadlineMs: number;
  /** Keeps checks, which run code that agents wrote, away from secrets. */
  wrap: Wrap;
  /** Takes secrets out of their environment, and out of what they print. */
  redactor: Redactor;
  /** What they may do in a folder of the run. */
  standIn: (cwd: string) => Stand;
  /** Runs one of them on another host, where that is to be done. */
  elsewhere?:
    | ((check: Check, folder: string, owner: string) => Promise<{ end: CheckEnd; worker: string | undefined } | undefined>)
    | undefined;
  /** The environment of a check in a folder of the run. */
  env: (folder: string) => NodeJS.ProcessEnv;
  now: () => Date;
}

/** One time that the checks are run. */
export interface CheckedAt {
  phase: string;
  stream?: number;
  folder: string;
  tree: string;
  /** Called once the checks have ended, to clean up what they left in the tree. */
  after?: (evidence: readonly CheckEvidence[]) => Promise<unknown>;
  /** The files of the tree that are changed by now, and whether nothing was left besides. */
  changed?: (() => Promise<{ files: string[]; clean: boolean }>) | undefined;
}

/** What is known of the checks before anything was changed. */
export interface Worth {
  /** What they said of the commit that the run began from. */
  baseline: readonly CheckEvidence[];
  /** Whether each notices when the code is broken, as far as that was tried. */
  notices: ReadonlyMap<string, boolean>;
}

const TAIL = 4_000;
const MOST_NAMED = 20;

/** Runs the checks once a tree: the same tree has the same evidence in whichever folder it is. */
export function createChecks(deps: ChecksDeps) {
  const { journal, configured, findChecks, signal, deadlineMs, wrap, redactor, standIn, elsewhere, env, now } = deps;
  const seen = new Map<string, CheckEvidence[]>();
  let worth: Promise<Worth> = Promise.resolve({ baseline: [], notices: new Map() });

  async function runOne(
    check: Check,
    folder: string,
    tree: string,
    onWorker?: (worker: string | undefined) => void,
  ): Promise<CheckEvidence> {
    const away = await elsewhere?.(check, folder, `checks/${tree}/${check.name}`);
    if (signal.aborted) throw new RunStopped("the run was stopped");
    if (away) onWorker?.(away.worker);
    const { exitCode, ending, output, sha256, bytes, durationMs } = away?.end ?? (await runHere(check, folder));
    return {
      name: check.name,
      command: check.command,
      exitCode,
      ending,
      tail: redactor.clean(output).slice(-TAIL),
      sha256,
      bytes,
      durationMs: Math.round(durationMs),
      tree,
      at: now().toISOString(),
    };
  }

  async function runHere(check: Check, folder: string): Promise<CheckEnd> {
    const cwd = resolve(folder, check.cwd);
    const [program, ...args] = await wrap(["/bin/sh", "-c", check.command], cwd, { place: folder, ...standIn(folder) });
    const theirs = env(folder);
    const result = await exec(program, args, {
      cwd,
      env: { ...projectEnvironment(theirs, redactor), CI: theirs.CI ?? "true" },
      deadlineMs,
      signal,
      maxOutput: TAIL * 4,
    });
    if (signal.aborted) throw new RunStopped("the run was stopped");
    const { code: exitCode, ending, output, sha256, bytes, durationMs } = result;
    return { exitCode, ending, output, sha256, bytes, durationMs };
  }

  async function checksIn(folder: string): Promise<Check[]> {
    return configured?.map((command) => ({ name: command, command, cwd: "." })) ?? (await findChecks(folder));
  }

  /** Runs them all on a tree, unless that was done before; `judged` says what each result is worth. */
  async function run(at: CheckedAt & { key: string }, judged: (each: CheckEvidence) => CheckEvidence): Promise<CheckEvidence[]> {
    const known = seen.get(at.tree);
    if (known) return known;
    const head = {
      key: at.key,
      kind: "checks" as const,
      phase: at.phase,
      stream: at.stream ?? null,
    };
    const found = await journal.step(z.array(CheckEvidence), head, { tree: at.tree, configured }, async () => {
      const checks = await checksIn(at.folder);
      const evidence: CheckEvidence[] = [];
      const before = new Set<string>();
      let isClean = false;
      let worker: string | undefined;
      for (const check of checks) {
        const ran = await runOne(check, at.folder, at.tree, (by) => {
          worker = by ?? worker;
        });
        const left = await at.changed?.();
        isClean = left?.clean === true;
        const changed = (left?.files ?? []).filter((file) => !before.has(file));
        for (const file of changed) before.add(file);
        evidence.push(judged(changed.length === 0 ? ran : { ...ran, changed: changed.slice(0, MOST_NAMED) }));
      }
      if (checks.length > 0 && !isClean) await at.after?.(evidence);
      return { value: evidence, verdict: checks.length === 0 ? "no checks" : passed(evidence) ? "passed" : "failed", worker };
    });
    seen.set(at.tree, found);
    return found;
  }

  return {
    /** Finds out what the checks are worth; nothing is checked before that is known. */
    begin(work: () => Promise<Worth>): void {
      worth = work();
      worth.catch(() => undefined);
    },
    /** What the checks say of the commit that the run begins from. What does not pass there is not the run's doing. */
    baseline: (at: CheckedAt) => run({ ...at, key: runKeys.baseline }, (each) => withExcuse(each, each)),
    /** Runs one check again, in another folder. */
    async again({ name }: CheckEvidence, folder: string): Promise<CheckEvidence | undefined> {
      const check = (await checksIn(folder)).find((each) => each.name === name);
      return check && runOne(check, folder, "");
    },
    async run({ prefix, ...at }: CheckedAt & { prefix: string }): Promise<CheckEvidence[]> {
      const { baseline, notices } = await worth;
      return run({ ...at, key: checksKey(prefix, at.tree) }, (each) => {
        const before = baseline.find(({ name }) => name === each.name);
        const bound = notices.get(each.name);
        return { ...withExcuse(each, before), ...(bound !== undefined && { bound }) };
      });
    },
    /** Waits for what is under way before anything is checked. */
    async settled(): Promise<void> {
      await worth.catch(() => undefined);
    },
  };
}
export type Checks = ReturnType<typeof createChecks>;

function withExcuse(each: CheckEvidence, before: CheckEvidence | undefined): CheckEvidence {
  const excused = excuseOf(each, before);
  return excused === undefined ? each : { ...each, excused };
}

/** Whether nothing of it is to be held against the run. */
export function passed(evidence: readonly CheckEvidence[]): boolean {
  return evidence.every((each) => isGreen(each) || each.excused !== undefined);
}

/** The checks whose passing says nothing about the code: tests, and all of them where there is none that noticed anything. */
export function unbound(evidence: readonly CheckEvidence[]): CheckEvidence[] {
  const tried = evidence.filter((each) => isGreen(each) && each.bound !== undefined);
  const anyBound = tried.some(({ bound }) => bound === true);
  return tried.filter(({ name, bound }) => bound === false && (!anyBound || /^test\b/.test(name)));
}

/** The record as agents and people read it. */
export function describeEvidence(evidence: readonly CheckEvidence[], tailLength = 2_000): string {
  if (evidence.length === 0) return "No checks were found in this project, so none were run.";
  return evidence
    .map((each) => {
      const end = each.ending === "exited" ? `exit code ${each.exitCode}` : each.ending;
      const facts = `- \`${oneLine(each.command, 300).replaceAll("`", "'")}\`: ${end}${worthOf(each)}, ${each.durationMs} ms, output sha256 ${each.sha256.slice(0, 16)} (${each.bytes} bytes), tree ${each.tree.slice(0, 12)}`;
      const tail = each.tail.trim().slice(-tailLength);
      return each.exitCode === 0 && tailLength > 0 ? facts : tail && tailLength > 0 ? `${facts}\n${fence(tail)}` : facts;
    })
    .join("\n");
}

function worthOf({ excused, bound, changed }: CheckEvidence): string {
  if (changed) return ` (it changed files while it checked: ${changed.map((file) => oneLine(file, 100)).join(", ")})`;
  if (excused === "cannot run") return " (it cannot run here, and could not before)";
  if (excused === "failed before") return " (as before the run: nothing new fails)";
  return bound === false ? " (no evidence: it also passes when the code is broken)" : "";
}

/** A code block that its own content cannot close. */
export function fence(text: string, language = ""): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map((match) => match[0].length));
  const marks = "`".repeat(longest + 1);
  return `${marks}${language}\n${text}\n${marks}`;
}
