import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { treeOf } from "../../git/worktrees.ts";
import { smallTextAt } from "../../lib/pinned/read.ts";
import type { Check } from "../../project/commands.ts";
import { findInstalls, type Install, type InstallInput, installInputs } from "../../project/installs.ts";
import { createPreparer, isPrepared } from "../../project/prepare.ts";
import { whyCouldNotRun } from "../../project/reports/could-not-run.ts";
import type { CheckEvidence } from "../../protocol/runs.ts";
import { RunStopped } from "../steps/journal.ts";
import { type RunPreparationDeps, recordOf } from "./prepare.ts";
import { type BranchWorkplace, installedOfRun } from "./workspace.ts";

export type ReinstallDeps = Omit<RunPreparationDeps, "journal" | "checksIn" | "kept">;

/** A state of a run that is about to be checked. */
export interface CheckedState {
  folder: string;
  tree: string;
}

const LARGEST = 20_000_000;

/**
 * When an agent changes lock files, installs what they require into the tree that is about to be checked: once for each state of
 * them, which the run's other trees then copy. Returns failed installs as evidence: a lock file that does not install counts
 * against the work, unless this host cannot install it.
 */
export function createReinstaller(deps: ReinstallDeps) {
  const { workplace, signal, sandboxProfile, env, note, now } = deps;
  /** By the install's file: the installed state, and the evidence if it failed. */
  const states = new Map<string, { state: string; failed?: CheckEvidence }>();

  async function reinstall(place: BranchWorkplace, { folder, tree }: CheckedState, install: Install): Promise<CheckEvidence[]> {
    const { repo, workspace } = place;
    const top = topOf(place, folder);
    const [key, state] = [join(top, install.folder, install.file), stateIn(top, install)];
    const known = states.get(key);
    if (known?.state === state) return known.failed ? [{ ...known.failed, tree }] : [];
    const names = [...(await place.installed), ...place.made];
    const preparer = createPreparer({ ...deps, kept: installedOfRun(place) });
    const at = {
      ...{ tree: treeOf(repo, top, ""), checkout: { root: workspace.tree.path, names }, env: env(folder) },
      ...{ profile: { place: folder, ...sandboxProfile(folder) }, scratch: place.folder, keep: true, replace: true, signal },
    };
    const [prepared] = await preparer.prepare([install], at);
    const record = recordOf(prepared!, { tree, at: now().toISOString() }, names.length > 0);
    for (const name of record.made) place.made.add(name);
    if (isPrepared(prepared!)) {
      states.set(key, { state });
      note(`${join(install.folder, install.file)} was changed during the run; what it asks for now was installed for the checks`);
      return [];
    }
    const { ending, exitCode, tail } = record;
    const isUnable = prepared!.state === "missing program" || whyCouldNotRun({ ending, exitCode, tail, reachedTests: false });
    const failed: CheckEvidence = { ...record, verdict: isUnable ? "could not run" : "failed" };
    states.set(key, { state, failed });
    return [failed];
  }

  return async (at: CheckedState, checks: readonly Pick<Check, "cwd">[]): Promise<CheckEvidence[]> => {
    if (workplace.kind !== "branch") return [];
    const top = topOf(workplace, at.folder);
    const own = workplace.repo.prefix || ".";
    const installs = findInstalls(top, [...new Set([own, ...checks.map(({ cwd }) => join(own, cwd))])]);
    const changed = await changedSince(workplace, at.tree, installs);
    const isHere = ({ folder, file }: Install) => states.has(join(top, folder, file));
    const wanted = installs.filter((install) => isHere(install) || changed(install));
    if (wanted.length === 0) return [];
    const work = async () => {
      const failed: CheckEvidence[] = [];
      for (const install of wanted) failed.push(...(await reinstall(workplace, at, install)));
      return failed;
    };
    try {
      // Other trees copy from the run's own.
      return await (top === workplace.workspace.tree.path ? whileNobodyCopies(workplace, work) : work());
    } catch (error) {
      if (signal.aborted) throw new RunStopped("the run was stopped");
      throw error;
    }
  };
}
export type Reinstaller = ReturnType<typeof createReinstaller>;

/** Waits for those that copy from the run's own tree, and lets others copy again when the work is done. */
async function whileNobodyCopies<T>(workplace: BranchWorkplace, work: () => Promise<T>): Promise<T> {
  const names = await workplace.installed;
  const done = Promise.allSettled([...workplace.copying]).then(work);
  workplace.installed = done.then(
    () => names,
    () => names,
  );
  return done;
}

const topOf = ({ repo }: BranchWorkplace, folder: string): string =>
  repo.prefix === "" ? folder : folder.slice(0, -repo.prefix.length - 1);

/** A hash of what an install requires now. */
function stateIn(top: string, install: Install): string {
  const texts = installInputs(install).map(({ path, read }) => read(smallTextAt(join(top, path), LARGEST) ?? ""));
  return createHash("sha256")
    .update(JSON.stringify([install.commands, ...texts]))
    .digest("hex");
}

/** Whether an install's requirements in a tree differ from those when the run began. */
async function changedSince(
  { repo, baseTree }: BranchWorkplace,
  tree: string,
  installs: readonly Install[],
): Promise<(install: Install) => boolean> {
  const files = installs.flatMap(installInputs);
  if (files.length === 0 || tree === baseTree) return () => false;
  const paths = [...new Set(files.map(({ path }) => path))];
  const diff = ["diff-tree", "-r", "-z", "--no-renames", "--name-only", baseTree, tree, "--", ...paths];
  const listed = (await repo.git.must(repo.root, ["--literal-pathspecs", ...diff])).split("\0").filter(Boolean);
  const textIn = async (state: string, path: string) => {
    const { code, stdout } = await repo.git.run(repo.root, ["cat-file", "blob", `${state}:${path}`], { maxOutput: LARGEST });
    return code === 0 ? stdout : "";
  };
  const differs = async ({ path, read }: InstallInput): Promise<string[]> => {
    if (!listed.includes(path)) return [];
    const isOther = basename(path) !== "package.json" || read(await textIn(baseTree, path)) !== read(await textIn(tree, path));
    return isOther ? [path] : [];
  };
  const changed = new Set((await Promise.all(files.map(differs))).flat());
  return (install) => installInputs(install).some(({ path }) => changed.has(path));
}
