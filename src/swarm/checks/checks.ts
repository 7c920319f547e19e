import { resolve } from "node:path";
import { z } from "zod";
import { diskFull, hasRoom } from "../../lib/disk-room.ts";
import { oneLine } from "../../lib/quoted.ts";
import type { Redactor } from "../../lib/redact.ts";
import type { SandboxProfile, Wrap } from "../../process/sandbox.ts";
import type { Check } from "../../project/commands.ts";
import { withoutTool } from "../../project/fallbacks.ts";
import { keepingGoing, notReachedAfterFailure } from "../../project/keep-going.ts";
import { withInstalledPnpm } from "../../project/package-manager.ts";
import { commandForTests } from "../../project/reports/select.ts";
import { checksVerdict, checkWords, isHeldAgainst } from "../../protocol/check-words.ts";
import type { CheckEvidence } from "../../protocol/runs.ts";
import type { CheckEnd } from "../../workers/remote/job-messages.ts";
import { type Journal, RunStopped } from "../steps/journal.ts";
import { checksKey, runKeys } from "../steps/keys.ts";
import type { Reinstaller } from "../workspace/reinstall.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { type CheckOutput, createCheckOutput } from "./check-output.ts";
import { baselineJudge, type Judge, judgeAgainst } from "./judges.ts";
import type { FindChecks } from "./planned-checks.ts";
import type { BaseFolder, PackageAssessment } from "./probe-packages.ts";
import { readEnd, recordOf, runCheck } from "./run-check.ts";
import { CheckRecord, failAgain, isGreen, type Noticed, sameCheck, testsToConfirm } from "./verdicts.ts";

export interface ChecksDeps {
  journal: Journal;
  /** The commands of the pipeline file; without them the project's own checks are found. */
  configured: readonly string[] | undefined;
  findChecks: FindChecks;
  /** Assesses the checks of single packages; without it they are treated like checks of the whole project. */
  packages?: PackageAssessment | undefined;
  signal: AbortSignal;
  deadlineMs: number;
  /** Keeps checks, which run code that agents wrote, away from secrets. */
  wrap: Wrap;
  /** Redacts secrets in their environment and output. */
  redactor: Redactor;
  /** What they may do in a folder of the run. */
  sandboxProfile: (cwd: string) => SandboxProfile;
  /** Installs what an agent's changes require, and returns what could not be installed. */
  reinstall?: Reinstaller | undefined;
  /** Runs a check on another host; undefined if it is to run here. */
  elsewhere?:
    | ((check: CheckToRun, folder: string, owner: string) => Promise<{ end: CheckEnd; worker: string | undefined } | undefined>)
    | undefined;
  /** The environment of a check in a folder of the run. */
  env: (folder: string) => NodeJS.ProcessEnv;
  /** Hears what the checks of a step print, as they print it. */
  onOutput?: ((key: string, stream: number | null, text: string) => void) | undefined;
  now: () => Date;
  /** Prefix of the checks' names, if the run has several repositories. */
  label?: string | undefined;
  /** The tree of this repository within a state of all repositories. */
  treeIn?: (state: string) => Promise<string>;
}

/** One execution of the checks. */
export interface CheckedAt {
  phase: string;
  stream?: number;
  folder: string;
  tree: string;
  /** Called after the checks, to clean up what they left in the tree. */
  after?: (evidence: readonly CheckEvidence[]) => Promise<unknown>;
  /** The files changed in the tree by now, and whether nothing else was left. */
  changed?: (() => Promise<{ files: string[]; clean: boolean }>) | undefined;
  /** Restores files of the tree. */
  restore?: ((files: readonly string[]) => Promise<void>) | undefined;
  /** Keep what a check fixes as it runs. */
  keepChanged?: boolean;
  /** Hears what they print. */
  output?: CheckOutput | undefined;
}

/** What is known about the checks before anything was changed. */
export interface ProbedChecks {
  /** Their results on the commit that the run began from. */
  baseline: readonly CheckRecord[];
  /** Whether each notices broken code, as far as that was tried. */
  notices: readonly Noticed[];
}

/** A check, or a program with arguments to run instead of its command. */
export type CheckToRun = Check & { instead?: [string, ...string[]] | undefined; ranWith?: string };
type OnWorker = (worker?: string) => void;
type JudgeOf = (check: CheckToRun, ran: CheckRecord) => Promise<Judge>;

/** The checks to run now, and whether more follow once the changes are known. */
interface Found {
  checks: CheckToRun[];
  later: boolean;
}

const MOST_NAMED = 20;
const AGAIN_ALONE = "again when run alone";

/** Runs single checks in a tree and judges their results. */
function createCheckRunner({ signal, deadlineMs, wrap, redactor, sandboxProfile, elsewhere, env, now }: ChecksDeps) {
  async function runOne(
    check: CheckToRun,
    folder: string,
    tree: string,
    onWorker?: (worker: string | undefined) => void,
    output?: CheckOutput,
  ): Promise<CheckRecord> {
    output?.begin(check.command);
    const running = { wrap, sandboxProfile, env, deadlineMs, signal, redactor };
    const going = keepingGoing(check.command);
    const instead = check.instead ?? (going === check.command ? undefined : (["/bin/sh", "-c", going] as [string, ...string[]]));
    const away = await elsewhere?.({ ...check, instead }, folder, `checks/${tree}/${check.name}`);
    if (signal.aborted) throw new RunStopped("the run was stopped");
    if (away) onWorker?.(away.worker);
    const ran = away ? readEnd(away.end) : await runCheck(check, folder, { ...running, onOutput: output?.add }, instead);
    if (away) output?.add(away.end.output);
    output?.end(ran.end.exitCode);
    if (signal.aborted) throw new RunStopped("the run was stopped");
    if (!away && ran.end.exitCode !== 0 && !hasRoom(folder))
      throw diskFull(`the check "${check.name}" proves nothing: the disk was full when it failed.`);
    const ranWith = check.ranWith && { ranWith: check.ranWith };
    const record = { ...recordOf(check, ran, redactor), ...ranWith, tree, at: now().toISOString() };
    if (isGreen(record) || check.instead) return record;
    if (instead && !check.ranWith) record.ranWith = `run as "${going}", so that no failure hides another`;
    const unreached = notReachedAfterFailure(check.command, { top: folder, cwd: resolve(folder, check.cwd) });
    return unreached === undefined ? record : { ...record, unreached };
  }

  /** Runs one check and notes which files it changed; the changes of a failed check are undone. */
  async function runAndRestore(check: CheckToRun, at: CheckedAt, known: Set<string>, onWorker: (worker?: string) => void) {
    const ran = await runOne(check, at.folder, at.tree, onWorker, at.output);
    const left = await at.changed?.();
    const changed = (left?.files ?? []).filter((file) => !known.has(file));
    const hasPassed = ran.ending === "exited" && ran.exitCode === 0;
    if (changed.length > 0 && !hasPassed && at.restore) {
      await at.restore(changed);
      return { ran, isClean: false };
    }
    for (const file of changed) known.add(file);
    return {
      ran: changed.length === 0 ? ran : { ...ran, changed: changed.slice(0, MOST_NAMED) },
      isClean: left?.clean === true,
    };
  }

  /**
   * Confirms a failure. If the runner can, only the failed tests run again first: if all of them fail again, that settles it.
   * Tests that pass alone may be flaky, or fail only together with others, so then the whole check decides.
   */
  async function runAgain(check: Check, first: CheckRecord, at: CheckedAt, judge: Judge, ...known: [Set<string>, OnWorker]) {
    const tests = testsToConfirm(first, judge.doubted(first));
    const instead = tests && commandForTests(keepingGoing(check.command), resolve(at.folder, check.cwd), tests);
    if (instead) {
      const alone = await runAndRestore({ ...check, instead }, at, ...known);
      if (failAgain(tests, alone.ran)) return { judged: withAddedReason(judge.once(first), AGAIN_ALONE), isClean: alone.isClean };
    }
    const whole = await runAndRestore(check, at, ...known);
    return { judged: judge.twice(first, whole.ran), isClean: whole.isClean };
  }

  /** Runs a check, and once more if it fails. */
  async function runAndJudge(check: CheckToRun, at: CheckedAt, judgeOf: JudgeOf, ...known: [Set<string>, OnWorker]) {
    const { ran, isClean } = await runAndRestore(check, at, ...known);
    const judge = await judgeOf(check, ran);
    const once = judge.once(ran);
    const isWorthAnother = once.verdict === "failed" && ran.ending === "exited" && !ran.changed;
    return isWorthAnother ? runAgain(check, ran, at, judge, ...known) : { judged: once, isClean };
  }

  return { runOne, runAndJudge };
}

/** Runs the checks once per tree: the same tree has the same evidence in any folder. */
export function createChecks(deps: ChecksDeps) {
  const { journal, configured, findChecks, packages, reinstall, env, label, treeIn = async (state) => state } = deps;
  const { redactor, onOutput } = deps;
  const { runOne, runAndJudge } = createCheckRunner(deps);
  const evidenceByTree = new Map<string, CheckRecord[]>();
  let probe = async (): Promise<ProbedChecks> => ({ baseline: [], notices: [] });
  let probed: Promise<ProbedChecks> | undefined;
  /** Probes the checks, once. */
  const probeResult = (): Promise<ProbedChecks> => {
    probed ??= probe();
    probed.catch(() => undefined);
    return probed;
  };

  const checksIn = async (folder: string, changed?: readonly string[]): Promise<CheckToRun[]> =>
    runnableIn(
      (configured?.map(asCheck) ?? (await findChecks(folder, changed, changed && packages?.note))).map((check) =>
        label === undefined ? check : { ...check, name: `${label}: ${check.name}` },
      ),
      folder,
      env(folder),
    );

  /** Runs all checks on a tree, unless that was done before. */
  async function run(at: CheckedAt & { key: string }, find: () => Promise<Found>, judgeOf: JudgeOf): Promise<CheckRecord[]> {
    const head = { key: at.key, kind: "checks" as const, phase: at.phase, stream: at.stream ?? null };
    return journal.step(z.array(CheckRecord), head, { tree: at.tree, configured }, async ({ key }) => {
      const tell = (text: string) => onOutput?.(key, head.stream, text);
      const output = createCheckOutput(tell, redactor.clean);
      const { checks: found, later } = await find();
      const installed = (await reinstall?.({ ...at, tree: await treeIn(at.tree) }, found)) ?? [];
      const evidence: CheckRecord[] = installed.map((each) => ({ ...each, tree: at.tree }));
      const checks = runnableIn(found, at.folder, env(at.folder));
      const touched = new Set<string>();
      let isClean = false;
      let worker: string | undefined;
      const onWorker = (by?: string) => {
        worker = by ?? worker;
      };
      for (const check of checks) {
        const last = await runAndJudge(check, { ...at, output }, judgeOf, touched, onWorker);
        isClean = last.isClean;
        evidence.push(last.judged);
      }
      if (checks.length > 0 && !isClean) await at.after?.(evidence);
      const single = later ? [] : checks.filter(isByPackage);
      const notices =
        single.length > 0
          ? await packages?.notices(single, evidence, (one, folder) => runOne(one, folder, "", undefined, output))
          : undefined;
      const value = evidence.map((each) => ({ ...each, bound: each.bound ?? sameCheck(notices ?? [], each)?.noticed }));
      return { value, verdict: later && value.length === 0 ? "later, for what is changed" : checksVerdict(value), worker };
    });
  }

  const isByPackage = ({ isPerPackage }: Check) => isPerPackage === true && packages !== undefined;

  /** Judges a check of single packages; its result on the base commit is only found out once it fails. */
  async function judgeByPackage(check: CheckToRun, ran: CheckRecord): Promise<Judge> {
    const onBase = async (at: BaseFolder) =>
      (
        await runAndJudge(
          check,
          { ...at, phase: "" },
          async () => baselineJudge,
          new Set(),
          () => {},
        )
      ).judged;
    const before = isGreen(ran) ? undefined : await packages?.before(check, onBase);
    return judgeAgainst(before ? [before] : [], []);
  }

  return {
    /** The checks of a folder. */
    find: checksIn,
    /** Sets how the checks are probed. That happens when `time` resolves, or earlier if something has to be checked. */
    begin(work: () => Promise<ProbedChecks>, time: Promise<unknown>): void {
      probe = work;
      probed = undefined;
      // Callers that need the result get its failure.
      time.then(probeResult).catch(() => undefined);
    },
    /** The result of the probe. */
    probeResult,
    /** Runs the checks on the commit that the run begins from. The run is not blamed for what does not pass there. */
    baseline({ everything, ...at }: CheckedAt & { everything: boolean }): Promise<CheckRecord[]> {
      const find = async () => {
        const checks = await checksIn(at.folder);
        return { checks: checks.filter((each) => everything || !isByPackage(each)), later: checks.some(isByPackage) };
      };
      return run({ ...at, key: runKeys.baseline }, find, async () => baselineJudge);
    },
    /** Runs one check again, in another folder. */
    async again(known: CheckEvidence, folder: string): Promise<CheckRecord | undefined> {
      const check = sameCheck(await checksIn(folder), known);
      return check && runOne(check, folder, "");
    },
    async run({ prefix, ...at }: CheckedAt & { prefix: string }): Promise<CheckEvidence[]> {
      const { baseline, notices } = await probeResult();
      const judge = judgeAgainst(baseline, notices);
      const known = evidenceByTree.get(at.tree) ?? baseline.filter(({ tree }) => tree === at.tree).map(judge.once);
      const isKnown = (check: Check) => sameCheck(baseline, check) !== undefined;
      const judgeOf: JudgeOf = async (check, ran) => (isByPackage(check) && !isKnown(check) ? judgeByPackage(check, ran) : judge);
      const find = async () => ({
        checks: await checksIn(at.folder, packages && (await packages.changed(await treeIn(at.tree)))),
        later: false,
      });
      const evidence = known.length > 0 ? known : await run({ ...at, key: checksKey(prefix, at.tree) }, find, judgeOf);
      evidenceByTree.set(at.tree, evidence);
      return evidence;
    },
    /** Waits until a running probe has ended. */
    async settled(): Promise<void> {
      await probed?.catch(() => undefined);
    },
  };
}
export type Checks = ReturnType<typeof createChecks>;

/** The checks of the run's own repository, followed by those of the others that it changes. */
export function checksOfAll(
  own: Checks,
  others: readonly { checks: Checks; workspace: Workspace }[],
): Pick<Checks, "run" | "settled"> {
  return {
    async run(at) {
      const evidence = [...(await own.run(at))];
      for (const { checks, workspace } of others) {
        const tidy = async (found: readonly CheckEvidence[]) => {
          const isKept = at.keepChanged && found.some(({ changed }) => changed !== undefined);
          if (!isKept) await workspace.tidy?.(`checks-${at.tree.slice(0, 12)}`);
        };
        const { folder: _, ...rest } = at;
        const there = {
          folder: workspace.cwd,
          changed: workspace.changed,
          restore: at.restore && workspace.restore,
          after: tidy,
        };
        evidence.push(...(await checks.run({ ...rest, ...there })));
      }
      return evidence;
    },
    async settled() {
      for (const { settled } of [own, ...others.map(({ checks }) => checks)]) await settled();
    },
  };
}

const asCheck = (command: string): Check => ({ name: command, command, cwd: "." });

/** Adapts checks to a folder: if the environment of a missing tool is there, the command uses it directly. */
function runnableIn(checks: readonly Check[], folder: string, env: NodeJS.ProcessEnv): CheckToRun[] {
  return checks.map((check) => {
    const at = { top: folder, cwd: resolve(folder, check.cwd), env };
    const fallback = withoutTool(check.command, at);
    if (fallback) return { ...check, command: fallback.command, ranWith: fallback.why };
    const pnpm = /\bpnpm\b/.test(check.command) ? withInstalledPnpm(at) : undefined;
    return pnpm ? { ...check, ranWith: pnpm.why } : check;
  });
}

const withAddedReason = (record: CheckRecord, words: string): CheckRecord => ({
  ...record,
  why: record.why ? `${record.why}, ${words}` : words,
});

/** Whether nothing in the evidence counts against the run. */
export function passed(evidence: readonly CheckEvidence[]): boolean {
  return !evidence.some(isHeldAgainst);
}

/** The evidence as agents and people read it. */
export function describeEvidence(evidence: readonly CheckEvidence[], tailLength = 2_000): string {
  if (evidence.length === 0) return "No checks were found in this project, so none were run.";
  return evidence
    .map((each) => {
      const end = each.ending === "exited" ? `exit code ${each.exitCode}` : each.ending;
      const facts = `- \`${oneLine(each.command, 300).replaceAll("`", "'")}\`: ${end}${inWords(each)}, ${each.durationMs} ms, output sha256 ${each.sha256.slice(0, 16)} (${each.bytes} bytes), tree ${each.tree.slice(0, 12)}`;
      const tail = each.tail.trim().slice(-tailLength);
      return each.exitCode === 0 && tailLength > 0 ? facts : tail && tailLength > 0 ? `${facts}\n${fence(tail)}` : facts;
    })
    .join("\n");
}

/** What to say about a check besides how it ended. */
function inWords(evidence: CheckEvidence): string {
  const words = oneLine(checkWords(evidence), 1_000);
  return words === "passed" || words === "failed" ? "" : ` (${words})`;
}

/** A code block that its content cannot close. */
export function fence(text: string, language = ""): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map((match) => match[0].length));
  const marks = "`".repeat(longest + 1);
  return `${marks}${language}\n${text}\n${marks}`;
}
