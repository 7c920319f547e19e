import { basename } from "node:path";
import { type ChecksDeps, checksOfAll, createChecks } from "../checks/checks.ts";
import { createPackageAssessment } from "../checks/probe-packages.ts";
import type { RunContext, RunPart } from "../context/context.ts";
import type { Inputs } from "../pipeline/inputs.ts";
import { companionJournal, treesIn } from "../workspace/companions.ts";
import { prepareRun } from "../workspace/prepare.ts";
import { createReinstaller } from "../workspace/reinstall.ts";
import { environmentIn, type Workplace } from "../workspace/workspace.ts";
import type { SwarmDeps } from "./deps.ts";

export interface RunPartsDeps extends Pick<ChecksDeps, "sandboxProfile" | "deadlineMs" | "elsewhere" | "signal" | "journal"> {
  deps: Pick<SwarmDeps, "wrap" | "redactor" | "findChecks" | "chosenChecks" | "installedFolder" | "log" | "onSay"> & {
    env: NodeJS.ProcessEnv;
    now: () => Date;
  };
  workplace: Workplace;
  projectPath: string;
  inputs: Pick<Inputs, "with">;
  /** The commands of the pipeline file. */
  configured: readonly string[] | undefined;
  note: (text: string) => void;
}

/** Each repository that a run works on, with its checks and its installer. */
export function openParts({ deps, workplace, projectPath, inputs, configured, note, journal, ...rest }: RunPartsDeps) {
  const { wrap, redactor, findChecks, log, env, now } = deps;
  const { sandboxProfile, deadlineMs, signal, elsewhere } = rest;
  const onOutput = (key: string, stream: number | null, did: string) =>
    deps.onSay?.({ key, agent: "checks", stream, text: "", did }, journal.runId);
  const chosen = (path: string) => deps.chosenChecks?.(path)?.commands;

  const partOf = (at: Omit<RunPart, "checks">, more: Partial<ChecksDeps> & Pick<ChecksDeps, "configured">) => {
    const { workplace: place } = at;
    const tools = { wrap, redactor, sandboxProfile, env: (cwd: string) => environmentIn(place, cwd, env) };
    const preparing = { ...tools, workplace: place, log, note: at.note, now, signal };
    const checks = createChecks({
      ...{ ...tools, journal: at.journal, findChecks, deadlineMs, signal, now, onOutput },
      reinstall: createReinstaller(preparing),
      packages: place.kind === "branch" ? createPackageAssessment({ ...at, workplace: place, signal }) : undefined,
      ...more,
    });
    const prepare = () => prepareRun({ ...preparing, journal: at.journal, kept: deps.installedFolder, checksIn: checks.find });
    return { ...at, checks, prepare };
  };

  const own = partOf(
    { workplace, journal, note },
    {
      ...{ configured: configured ?? chosen(projectPath), elsewhere },
      ...(workplace.kind === "branch" && { treeIn: workplace.ownTree }),
    },
  );
  const companions = workplace.kind === "branch" ? workplace.companions : [];
  const others = companions.map(({ name, projectPath: path, workplace: place }, index) => {
    const label = basename(path);
    return partOf(
      { workplace: place, journal: companionJournal(journal, name), note: (text) => note(`${label}: ${text}`) },
      {
        ...{ label, configured: inputs.with[index]?.checks ?? chosen(path) },
        treeIn: async (state) => (workplace.kind === "branch" ? (await treesIn(workplace, state)).others[index]! : state),
      },
    );
  });
  const checks: RunContext["checks"] = checksOfAll(
    own.checks,
    others.map((part) => ({ checks: part.checks, workspace: part.workplace.workspace })),
  );
  return {
    parts: [own, ...others],
    checks,
    async prepare(): Promise<void> {
      for (const part of [own, ...others]) await part.prepare();
    },
  };
}
