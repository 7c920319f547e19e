import type { ProjectCommand } from "../../protocol/analysis.ts";
import type { ProjectView } from "./scope.ts";

const MOST_READ = 20;
const PYTHON_TEST = /(?:^|\/)(?:test_[^/]+|[^/]+_test|tests)\.py$/;
const NODE_TEST = /[.-]test\.[cm]?js$/;

/** Guesses how tests without a package file are run, as in many script collections, by what they import. */
export function ofUnpackaged(view: ProjectView): ProjectCommand[] {
  const found = (kind: string, names: RegExp) =>
    view.all.some((one) => one.kind === kind) ? [] : view.testFiles.filter((file) => names.test(file));
  const imports = (files: readonly string[], module: RegExp) =>
    files.slice(0, MOST_READ).some((file) => module.test(view.read(file) ?? ""));
  const guess = (command: string, from: string): ProjectCommand[] => [
    { purpose: "test", command, cwd: ".", from, isGuess: true as const },
  ];
  const python = found("python", PYTHON_TEST);
  if (python.length > 0) {
    const usesPytest = view.has("conftest.py") || imports(python, /^\s{0,20}(?:import|from) pytest\b/m);
    return guess(usesPytest ? "python3 -m pytest" : `python3 -m unittest discover${startOf(python, view)}`, python[0]!);
  }
  const node = found("npm", NODE_TEST);
  return node.length > 0 && imports(node, /["']node:test["']/) ? guess("node --test", node[0]!) : [];
}

/** Where unittest has to begin to find tests in a folder that is no package itself. */
function startOf(files: readonly string[], view: ProjectView): string {
  const folders = new Set(files.map((file) => file.slice(0, Math.max(0, file.indexOf("/")))));
  const [folder = ""] = folders;
  return folders.size > 1 || folder === "" || view.has(`${folder}/__init__.py`) || !/^[\w.-]+$/.test(folder)
    ? ""
    : ` -s ${folder}`;
}
