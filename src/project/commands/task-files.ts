import type { ProjectCommand } from "../../protocol/analysis.ts";
import { managerOf } from "./javascript.ts";
import type { ProjectView, Purpose } from "./scope.ts";

const TARGETS: Readonly<Record<Purpose, readonly string[]>> = {
  test: ["test", "tests", "check"],
  lint: ["lint", "vet"],
  build: ["build", "all"],
};
const FILES: readonly { tool: string; names: readonly string[] }[] = [
  { tool: "just", names: ["justfile", "Justfile", ".justfile"] },
  { tool: "make", names: ["Makefile", "makefile", "GNUmakefile"] },
  { tool: "task", names: ["Taskfile.yml", "Taskfile.yaml", "taskfile.yml"] },
];

interface TaskFile {
  tool: string;
  file: string;
  /** The recipe of each target, line by line. */
  targets: Map<string, string[]>;
}

/** The commands of Make, just and Task for these purposes, each the first that one of them has. */
export function fromTaskFiles(view: ProjectView, purposes: readonly Purpose[]): ProjectCommand[] {
  return purposes.flatMap((purpose) => {
    for (const { tool, file, targets } of taskFiles(view)) {
      const target = TARGETS[purpose].find((name) => targets.has(name));
      if (target) return [{ purpose, command: `${tool} ${target}`, cwd: ".", from: file }];
    }
    return [];
  });
}

/** The recipe of a target in a folder, line by line. */
export function recipeOf(view: ProjectView, cwd: string, tool: string, target: string): readonly string[] {
  const names = FILES.find((one) => one.tool === tool)?.names ?? [];
  const file = names.map((name) => (cwd === "." ? name : `${cwd}/${name}`)).find(view.has);
  return (file === undefined ? undefined : targetsOf(view.read(file) ?? "").get(target)) ?? [];
}

/**
 * The targets that do more than the usual command would: they start a file of the project, or another tool. A target that only
 * calls the usual check adds nothing.
 */
export function ownTargets(view: ProjectView, usual: readonly ProjectCommand[]): ProjectCommand[] {
  const starts = (line: string) => {
    const first = programOf(line);
    return first.includes("/") && view.has(first.replace(/^\.\//, ""));
  };
  return (Object.keys(TARGETS) as Purpose[]).flatMap((purpose) => {
    const known = usual.filter((one) => one.purpose === purpose).map(({ command }) => coreOf(command));
    const runsOther = (line: string) => OTHER_RUNNERS.test(line) && !known.some((core) => line.includes(core));
    for (const { tool, file, targets } of taskFiles(view)) {
      const target = TARGETS[purpose].find((name) => targets.get(name)?.some((line) => starts(line) || runsOther(line)));
      if (target) return [{ purpose, command: `${tool} ${target}`, cwd: ".", from: file }];
    }
    return [];
  });
}

/** Tools that run tests another way than the language's own command. */
const OTHER_RUNNERS = /\b(?:nextest|gotestsum|ginkgo|tarpaulin|miri|llvm-cov|hatch|trial|prove|bats)\b/;

const programOf = (line: string) =>
  line
    .trim()
    .replace(/^[@+-]+/, "")
    .split(/\s+/)
    .find((word) => !/^\w+=/.test(word)) ?? "";

/** The words that name the tool: `cargo test`, `pytest`, `npm run lint`. */
export function coreOf(command: string): string {
  if (/^(?:npm|pnpm|yarn|bun|deno|make|just|task) /.test(command)) return command;
  const words = command.split(" ").filter((word) => !/^(?:-.*|uv|poetry|pdm|pipenv|bundle|exec|run|python3?)$/.test(word));
  return words.slice(0, /^(?:cargo|go|mix|dart|flutter|sbt)$/.test(words[0] ?? "") ? 2 : 1).join(" ");
}

/** What Nx or Turborepo runs in every package, if the root has no script for it. */
export function fromTaskRunner(view: ProjectView, purpose: Purpose): ProjectCommand | undefined {
  const root = view.manifests.find(({ kind, folder }) => kind === "npm" && folder === ".");
  const from = ["turbo.json", "nx.json"].find(view.has);
  if (!root || from === undefined) return undefined;
  const isNamed = (task: string) => from === "nx.json" || (view.read(from) ?? "").includes(`"${task}"`);
  if (!isNamed(purpose) || !view.manifests.some(({ kind, scripts }) => (kind === "npm" || kind === "nx") && scripts.has(purpose)))
    return undefined;
  const manager = managerOf(root, view);
  const exec = manager === "pnpm" ? "pnpm exec" : manager === "yarn" ? "yarn" : manager === "bun" ? "bunx" : "npx";
  return {
    purpose,
    command: `${exec} ${from === "nx.json" ? `nx run-many -t ${purpose}` : `turbo run ${purpose}`}`,
    cwd: ".",
    from,
  };
}

/** What the package manager itself runs in every package of a workspace that has a script for it. */
export function fromWorkspaces(view: ProjectView, purpose: Purpose): ProjectCommand | undefined {
  const root = view.manifests.find(({ kind, folder }) => kind === "npm" && folder === ".");
  const from = view.has("pnpm-workspace.yaml") ? "pnpm-workspace.yaml" : root?.workspace && root.file;
  const having = view.manifests.filter(({ kind, folder, scripts }) => kind === "npm" && folder !== "." && scripts.has(purpose));
  if (!root || !from || having.length < 2) return undefined;
  const manager = managerOf(root, view);
  const command =
    manager === "npm"
      ? `npm run ${purpose} --workspaces --if-present`
      : manager === "pnpm"
        ? `pnpm --recursive --if-present run ${purpose}`
        : manager === "yarn" && view.has(".yarnrc.yml")
          ? `yarn workspaces foreach --all run ${purpose}`
          : undefined;
  return command === undefined ? undefined : { purpose, command, cwd: ".", from };
}

function taskFiles(view: ProjectView): TaskFile[] {
  return FILES.flatMap(({ tool, names }) =>
    names
      .filter(view.has)
      .slice(0, 1)
      .map((file) => {
        const text = view.read(file) ?? "";
        return { tool, file, targets: tool === "task" ? tasksOf(text) : targetsOf(text) };
      }),
  );
}

/** The tasks of a Taskfile, one level below `tasks:`. */
function tasksOf(text: string): Map<string, string[]> {
  const tasks = new Map<string, string[]>();
  let isWithin = false;
  for (const line of text.split(/\r?\n/)) {
    if (/^\S/.test(line)) isWithin = /^tasks:\s*$/.test(line);
    const name = isWithin ? /^ {2}([\w-]+):/.exec(line)?.[1] : undefined;
    if (name !== undefined) tasks.set(name, []);
  }
  return tasks;
}

function targetsOf(text: string): Map<string, string[]> {
  const targets = new Map<string, string[]>();
  let current: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    if (/^[ \t]/.test(line)) {
      for (const name of current) targets.get(name)!.push(line);
      continue;
    }
    const end = line.indexOf(":");
    if (line === "" || line.startsWith("#") || end < 0) continue;
    if (line[end + 1] === "=" || line.slice(end, end + 3) === "::=" || line.slice(0, end).includes("=")) continue;
    current = line
      .slice(0, end)
      .split(/[ \t]+/)
      .filter((name) => name !== "");
    for (const name of current) if (!targets.has(name)) targets.set(name, []);
  }
  return targets;
}
