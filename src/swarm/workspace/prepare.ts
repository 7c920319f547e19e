import { basename, dirname, join } from "node:path";
import { z } from "zod";
import type { SandboxProfile } from "../../process/sandbox.ts";
import type { Check } from "../../project/commands.ts";
import { asksForInstall, findInstalls, type Install, notInstalledIn, shellCommandOf } from "../../project/installs.ts";
import {
  createPreparer,
  isInstalled,
  isPrepared,
  missingInstallMessage,
  type Prepared,
  type PreparerDeps,
} from "../../project/prepare.ts";
import { CheckEvidence } from "../../protocol/runs.ts";
import { type Journal, RunStopped } from "../steps/journal.ts";
import { runKeys } from "../steps/keys.ts";
import type { BranchWorkplace, Workplace } from "./workspace.ts";

export interface RunPreparationDeps extends Omit<PreparerDeps, "deadlineMs"> {
  journal: Journal;
  workplace: Workplace;
  checksIn: (folder: string) => Promise<readonly Pick<Check, "cwd">[]>;
  sandboxProfile: (cwd: string) => SandboxProfile;
  env: (folder: string) => NodeJS.ProcessEnv;
  signal: AbortSignal;
  note: (text: string) => void;
  now: () => Date;
}

/** The journal's record of one install. */
const Installed = CheckEvidence.extend({ made: z.array(z.string()) });
type Installed = z.infer<typeof Installed>;

/**
 * Installs what the project's lock files require into the run's own tree, before any agent is asked: without it the checks could
 * not run. If something cannot be installed, a note names the command that a person can type.
 */
export async function prepareRun(deps: RunPreparationDeps): Promise<void> {
  const { journal, workplace, note } = deps;
  if (workplace.kind === "in place") {
    for (const install of notInstalledIn(workplace.workspace.cwd)) note(missingInPlace(install));
    return;
  }
  const { repo, workspace } = workplace;
  const checkout = { root: repo.root, names: workplace.names };
  const top = workspace.tree.path;
  const wanted = findInstalls(top, await foldersOf(deps, workplace)).filter((each) => !isInstalled(each, checkout, top));
  if (wanted.length === 0) return;
  const head = { key: runKeys.prepare, kind: "checks" as const, phase: "run" };
  const done = await journal.step(z.array(Installed), head, { base: workplace.base }, async () => {
    const value = await install(deps, workplace, wanted);
    const failed = value.filter(({ verdict }) => verdict !== "passed").map(({ why }) => why);
    return { value, verdict: inShort(value), ...(failed.length > 0 && { error: failed.join("; ") }) };
  });
  for (const { why, verdict, made } of done) {
    if (verdict !== "passed" && why !== undefined) note(why);
    for (const name of made) workplace.made.add(name);
  }
}

async function install(deps: RunPreparationDeps, workplace: BranchWorkplace, wanted: readonly Install[]): Promise<Installed[]> {
  const { journal, signal, sandboxProfile, env, now } = deps;
  const { repo, workspace, folder, baseTree } = workplace;
  const { cwd, tree } = workspace;
  try {
    const names = await workplace.installed;
    const checkout = { root: repo.root, names };
    const profile = { place: cwd, ...sandboxProfile(cwd) };
    // In a resumed run, agents may already have worked in the tree.
    const keeping = { keep: journal.life === 1, keepLater: (work: () => Promise<void>) => beforeCopies(workplace, work) };
    const at = { tree, checkout, profile, env: env(cwd), scratch: folder, ...keeping, signal };
    const done = await createPreparer(deps).prepare(wanted, at);
    return done.map((each) => recordOf(each, { tree: baseTree, at: now().toISOString() }, names.length > 0));
  } catch (error) {
    if (signal.aborted) throw new RunStopped("the run was stopped");
    throw error;
  }
}

/** Runs work in the run's own tree before others copy from it and before anything is run there; nobody else waits for it. */
function beforeCopies(workplace: BranchWorkplace, work: () => Promise<void>): void {
  const { installed } = workplace;
  workplace.installed = installed.then(async (names) => {
    await work();
    return names;
  });
  workplace.installed.catch(() => undefined);
}

/** The folders that commands run in: the project's own and, if packages below it need an install, those of its checks. */
async function foldersOf({ checksIn }: RunPreparationDeps, { repo, listed, workspace }: BranchWorkplace): Promise<string[]> {
  const own = repo.prefix === "" ? "." : repo.prefix;
  const isBelow = (path: string) => dirname(path) !== own && (own === "." || path.startsWith(`${own}/`));
  const isNested = (await listed).some((line) => {
    const path = line.slice(line.indexOf("\t") + 1);
    return asksForInstall(basename(path)) && isBelow(path);
  });
  const checks = isNested ? await checksIn(workspace.cwd) : [];
  return [...new Set([own, ...checks.map(({ cwd }) => join(own, cwd))])];
}

export function recordOf(prepared: Prepared, at: Pick<CheckEvidence, "tree" | "at">, hadSome: boolean): Installed {
  const { install, state, made, result } = prepared;
  const { code: exitCode, ending, output: tail, sha256, bytes, durationMs } = result;
  const isThere = isPrepared(prepared);
  const rest = hadSome ? "What the checkout has is used as it is." : "Checks that need it cannot run.";
  const why = isThere
    ? state === "kept" && "an earlier run installed the same, and that was taken"
    : missingInstallMessage(prepared, rest);
  return {
    name: `install (${join(install.folder, install.file)})`,
    command: shellCommandOf(install),
    ...{ exitCode, ending, tail, sha256, bytes, durationMs: Math.round(durationMs), made },
    verdict: isThere ? "passed" : state === "missing program" ? "could not run" : "failed",
    ...(why && { why }),
    ...at,
  };
}

function inShort(done: readonly Installed[]): string {
  const failed = done.filter(({ verdict }) => verdict !== "passed");
  if (failed.length > 0) return "not installed";
  return done.every(({ why }) => why !== undefined) ? "taken from an earlier run" : done.map(({ command }) => command).join("; ");
}

/** In place nothing is installed unasked: it is the user's own folder. */
const missingInPlace = (install: Install) =>
  `what ${install.file} asks for is not installed, and a run in place installs nothing. Do it yourself: ${shellCommandOf(install)}`;
