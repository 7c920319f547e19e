import { uses } from "../manifests/manifest.ts";
import { entriesOf, sectionsOf } from "../manifests/toml.ts";
import { type CommandFinder, nearest, type Scope, when } from "./scope.ts";

const RUNNERS = [
  ["uv.lock", "uv run "],
  ["poetry.lock", "poetry run "],
  ["pdm.lock", "pdm run "],
  ["Pipfile", "pipenv run "],
] as const;

export const ofPython: CommandFinder = (scope) => {
  const { manifest, view, has } = scope;
  const mine = view.manifests.filter(({ kind, folder }) => kind === "python" && folder === manifest.folder);
  const names = (name: string) => mine.some((one) => uses(one, name));
  const run = nearest(manifest.folder, view, RUNNERS) ?? "";
  const sections = configuration(scope);
  const settings = (section: string) => new Map(entriesOf(sections.get(section)));
  const ruff = names("ruff") || has("ruff.toml") || has(".ruff.toml");
  const mendsItself = ["tool.ruff", ""].some((section) => settings(section).get("fix") === "true");
  const typed = ["tool.mypy", "mypy"]
    .map(settings)
    .some((given) => ["files", "packages", "modules"].some((key) => given.has(key)));
  const test = testOf({ ...scope, names, run, sections });
  return [
    ...(test ? [test] : []),
    ...when(ruff, "lint", `${run}ruff check ${mendsItself ? "--no-fix " : ""}.`),
    ...when(!ruff && (names("flake8") || has(".flake8")), "lint", `${run}flake8`),
    ...when(!ruff && names("black"), "lint", `${run}black --check .`),
    ...when(!ruff && names("isort"), "lint", `${run}isort --check-only .`),
    ...when(names("mypy") || has("mypy.ini"), "lint", `${run}mypy${typed ? "" : " ."}`),
    ...when(names("pyright") || has("pyrightconfig.json"), "lint", `${run}pyright`),
  ];
};

/** The sections of every file in which Python's tools look for their settings. */
const configuration = ({ text }: Scope): Map<string, string> =>
  new Map(
    ["mypy.ini", "setup.cfg", "tox.ini", "ruff.toml", ".ruff.toml", "pyproject.toml"].flatMap((file) => [
      ...sectionsOf(text(file)),
    ]),
  );

interface Ways extends Scope {
  names(name: string): boolean;
  /** The prefix that runs a program in the project's own environment. */
  run: string;
  sections: ReadonlyMap<string, string>;
}

/** The first that applies, from the project's own runner to the usual one. */
function testOf({ has, names, run, sections, isTested }: Ways): ReturnType<CommandFinder>[number] | undefined {
  const python = `${run}${run === "" ? "python3" : "python"}`;
  const hatch = [...sections].some(
    ([name, body]) => /^tool\.hatch\.envs\..+\.scripts$/.test(name) && entriesOf(body).some(([key]) => key === "test"),
  );
  const pytest =
    ["pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py"].some(has) ||
    ["tool:pytest", "pytest"].some((section) => sections.has(section)) ||
    names("pytest");
  const ways: [holds: boolean, command: string][] = [
    [has("tests/runtests.py"), `${python} tests/runtests.py`],
    [has("runtests.py"), `${python} runtests.py`],
    [hatch, "hatch run test"],
    [sections.has("tool.hatch.envs.hatch-test"), "hatch test"],
    [pytest, `${python} -m pytest`],
    [has("manage.py"), `${python} manage.py test`],
    [has("tox.ini") || sections.has("tox:tox") || sections.has("tool.tox"), `${run}tox`],
    [has("noxfile.py"), `${run}nox`],
  ];
  const way = ways.find(([holds]) => holds);
  if (way) return ["test", way[1]];
  return isTested(/(?:^|\/)(?:test_[^/]+|[^/]+_test|tests)\.py$/)
    ? ["test", `${python} -m unittest discover`, "guess"]
    : undefined;
}
