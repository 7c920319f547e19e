import { arraysOf, entriesOf, sectionsOf } from "./manifests/toml.ts";

/** Extras and groups that hold what the project's own tests need. */
const FOR_TESTS = /^(?:dev|develop|development|tests?|testing)$/i;
/** A requirement that is one plain argument: no option, path or address. */
const REQUIREMENT = /^[A-Za-z0-9][\w.-]*(?:\[[\w.,-]+\])?\s*(?:[<>=!~][\w.<>=!~*, +-]*)?(?:;.*)?$/;
const NAMES_DEPENDENCIES = /^[ \t]*install_requires[ \t]*=[ \t]*(?:\[\s*["'\w]|\n[ \t]+\w|\w)/m;

/** What a Python project without a lock file names, by its package files. */
export interface PythonPackages {
  /** The project itself, with the extras for its tests; undefined if there is nothing to install of it. */
  own: string | undefined;
  /** The requirements of its groups for tests. */
  more: string[];
}

/** Reads what to install from `pyproject.toml`, `setup.py` and `setup.cfg`; undefined if they name no packages. */
export function pythonPackages(text: (name: string) => string): PythonPackages | undefined {
  const toml = sectionsOf(text("pyproject.toml"));
  const [project, poetry] = [toml.get("project"), toml.get("tool.poetry")];
  const setup = `${text("setup.py")}\n${text("setup.cfg")}`;
  const optional = [...arraysOf(toml.get("project.optional-dependencies")).keys()];
  const written = [...setup.matchAll(/^[ \t]*["']?(\w{3,11})["']?[ \t]*[:=][ \t]*(?:\[|\n[ \t]+\w)/gm)].map((match) => match[1]!);
  const hasExtras = /extras_require/.test(setup);
  const extras = [...optional, ...(hasExtras ? written : [])].filter((name) => FOR_TESTS.test(name));
  // A table in a group includes another group by its name, which is no package.
  const groups = [...arraysOf(toml.get("dependency-groups")?.replace(/\{[^{}]*\}/g, ""))].filter(([name]) =>
    FOR_TESTS.test(name),
  );
  const more = groups.flatMap(([, list]) => list).filter((each) => REQUIREMENT.test(each));
  const isPackage = /^name\b/m.test(`${project ?? ""}${poetry ?? ""}`) || setup.trim() !== "";
  const names =
    (arraysOf(project).get("dependencies") ?? []).length > 0 ||
    entriesOf(toml.get("tool.poetry.dependencies")).some(([name]) => name !== "python") ||
    NAMES_DEPENDENCIES.test(setup.replace(/^([ \t]*)setup\(\s*/gm, "$1"));
  if (!names && extras.length === 0 && more.length === 0) return undefined;
  return { own: isPackage ? (extras.length > 0 ? `.[${[...new Set(extras)].join(",")}]` : ".") : undefined, more };
}

/** The parts of `pyproject.toml` that name packages, as one text. */
export const packageSectionsOf = (text: string): string =>
  [...sectionsOf(text)]
    .flatMap(([name, section]) => (PACKAGE_SECTION.test(name) ? [`[${name}]\n${section.trim()}\n`] : []))
    .join("");
const PACKAGE_SECTION = /^(?:project|build-system|dependency-groups|tool\.poetry)(?:\.|$)/;
