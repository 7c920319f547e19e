import type { ManifestFacts } from "./manifest.ts";
import { arraysOf, entriesOf, quotedValue, requirementName, requirementsIn, sectionsOf } from "./toml.ts";

/** Which sections of a pyproject.toml name packages: in arrays, or as keys; to run with, or to work with. */
const PYPROJECT: readonly [section: RegExp, keys: RegExp, as: "arrays" | "keys", into: "dependencies" | "development"][] = [
  [/^project$/, /^dependencies$/, "arrays", "dependencies"],
  [/^(?:project\.optional-dependencies|dependency-groups)$/, /^/, "arrays", "development"],
  [/^tool\.(?:uv|pdm|hatch)(?:\.|$)/, /dependencies$/, "arrays", "development"],
  [/^tool\.pdm\.dev-dependencies$/, /^/, "arrays", "development"],
  [/^tool\.poetry\.dependencies$/, /^/, "keys", "dependencies"],
  [/^tool\.poetry\.(?:dev-dependencies|group\.[^.]+\.dependencies)$/, /^/, "keys", "development"],
];

export function readPyproject(text: string): ManifestFacts {
  const sections = sectionsOf(text);
  const found = { dependencies: new Set<string>(), development: new Set<string>() };
  for (const [section, body] of sections) {
    const tool = /^tool\.([\w-]+)/.exec(section)?.[1];
    if (tool) found.development.add(tool.toLowerCase());
    for (const [wanted, keys, as, into] of PYPROJECT) {
      if (!wanted.test(section)) continue;
      const named: [string, string[]][] = as === "arrays" ? [...arraysOf(body)] : entriesOf(body).map(([key]) => [key, [key]]);
      for (const [key, values] of named) if (keys.test(key)) for (const value of values) found[into].add(requirementName(value));
    }
  }
  return {
    ...found,
    name: quotedValue(sections.get("project"), "name") || quotedValue(sections.get("tool.poetry"), "name"),
    workspace: sections.has("tool.uv.workspace") ? "uv workspace" : undefined,
  };
}

const RUNS_WITH = /^requirements(?:[-_.](?:base|common|main|prod|production|runtime))?\.txt$/;

export function readRequirements(text: string, name: string): ManifestFacts {
  const named = text
    .split("\n")
    .filter((line) => /^[ \t]*[A-Za-z][\w.-]*[ \t]*(?:[[<>=!~;@#].*)?$/.test(line))
    .map(requirementName);
  return { name: "", [RUNS_WITH.test(name) ? "dependencies" : "development"]: new Set(named) };
}

export function readPipfile(text: string): ManifestFacts {
  const sections = sectionsOf(text);
  const keys = (section: string) => new Set(entriesOf(sections.get(section)).map(([key]) => key.toLowerCase()));
  return { name: "", dependencies: keys("packages"), development: keys("dev-packages") };
}

/** A setup.py lists its requirements, and the name of each list says what they are for. */
export function readSetupPy(text: string): ManifestFacts {
  const found = { dependencies: new Set<string>(), development: new Set<string>() };
  for (const line of listsOf(text)) {
    const into = /^(?:install_requires|requires|requirements|install_requirements|dependencies)$/.test(line.name)
      ? found.dependencies
      : found.development;
    for (const each of requirementsIn(line.text)) into.add(each);
  }
  return { ...found, name: /\bname\s*=\s*["']([\w.-]+)/.exec(text)?.[1] ?? "" };
}

/** The content of each list or table in a Python file whose name says that it holds requirements. */
function listsOf(text: string): { name: string; text: string }[] {
  const starts = [...text.matchAll(/^[ \t]*(\w+) ?= ?[[({]/gm)].filter(([, name]) => /requir|^dependencies$/.test(name!));
  return starts.map((start, index) => {
    const lines = text.slice(start.index + start[0].length, starts[index + 1]?.index).split("\n");
    const end = lines.findIndex((line) => /^[ \t]*[\])}]/.test(line) || /[\])}],?$/.test(line));
    return { name: start[1]!, text: (end < 0 ? lines : lines.slice(0, end + 1)).join("\n") };
  });
}

export function readSetupCfg(text: string): ManifestFacts {
  const sections = sectionsOf(text);
  const dependencies = new Set(indentedUnder(sections.get("options"), "install_requires").map(requirementName));
  const extras = (sections.get("options.extras_require") ?? "").split("\n").filter((line) => /^[ \t]/.test(line));
  const tests = indentedUnder(sections.get("options"), "tests_require");
  const tools = [...sections.keys()].map((section) => /^(?:tool:)?([\w-]+)/.exec(section)?.[1] ?? "");
  const development = new Set([...[...extras, ...tests].map(requirementName), ...tools.map((tool) => tool.toLowerCase())]);
  return { name: /^name[ \t]*=[ \t]*([\w.-]+)/m.exec(sections.get("metadata") ?? "")?.[1] ?? "", dependencies, development };
}

/** The lines that belong to a key of an INI file. */
function indentedUnder(section: string | undefined, key: string): string[] {
  const lines = (section ?? "").split("\n");
  const at = lines.findIndex((line) => line.startsWith(key));
  if (at < 0) return [];
  const own = lines[at]!.slice(lines[at]!.indexOf("=") + 1);
  const end = lines.findIndex((line, index) => index > at && !/^[ \t]/.test(line));
  return [own, ...lines.slice(at + 1, end < 0 ? undefined : end)];
}
