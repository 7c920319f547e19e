import type { ProjectCommand } from "../../protocol/analysis.ts";
import type { ProjectView, Purpose } from "./scope.ts";

const TARGETS: Readonly<Record<Purpose, readonly string[]>> = {
  test: ["test", "tests", "check"],
  lint: ["lint", "vet"],
  build: ["build", "all"],
};
const FILES: readonly { tool: string; names: readonly string[] }[] = [
  { tool: "make", names: ["Makefile", "makefile", "GNUmakefile"] },
  { tool: "just", names: ["justfile", "Justfile", ".justfile"] },
];

interface TaskFile {
  tool: string;
  file: string;
  /** What is done for each target, line by line. */
  targets: Map<string, string[]>;
}

/** The commands of Make and just for these purposes, each the first that one of them has. */
export function fromTaskFiles(view: ProjectView, purposes: readonly Purpose[]): ProjectCommand[] {
  return purposes.flatMap((purpose) => {
    for (const { tool, file, targets } of taskFiles(view)) {
      const target = TARGETS[purpose].find((name) => targets.has(name));
      if (target) return [{ purpose, command: `${tool} ${target}`, cwd: ".", from: file }];
    }
    return [];
  });
}

/** The targets that start a file of the project: its own way, before what such a project is usually checked with. */
export function ownTargets(view: ProjectView): ProjectCommand[] {
  const starts = (line: string) => {
    const words = line
      .trim()
      .replace(/^[@+-]+/, "")
      .split(/\s+/);
    const first = words.find((word) => !/^\w+=/.test(word)) ?? "";
    return first.includes("/") && view.has(first.replace(/^\.\//, ""));
  };
  return (Object.keys(TARGETS) as Purpose[]).flatMap((purpose) => {
    for (const { tool, file, targets } of taskFiles(view)) {
      const target = TARGETS[purpose].find((name) => targets.get(name)?.some(starts));
      if (target) return [{ purpose, command: `${tool} ${target}`, cwd: ".", from: file }];
    }
    return [];
  });
}

function taskFiles(view: ProjectView): TaskFile[] {
  return FILES.flatMap(({ tool, names }) =>
    names
      .filter(view.has)
      .slice(0, 1)
      .map((file) => ({ tool, file, targets: targetsOf(view.read(file) ?? "") })),
  );
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
