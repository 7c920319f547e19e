import type { ProjectFacts } from "../project/analyze.ts";
import type { Area, Framework } from "../project/frameworks.ts";
import { isExampleOrDocs } from "../project/places.ts";
import type { LanguageShare, ProjectCommand, SuggestedAgent } from "../protocol/analysis.ts";

const SERVER_LANGUAGES = [
  "Go",
  "Java",
  "Kotlin",
  "C#",
  "Python",
  "Ruby",
  "PHP",
  "Elixir",
  "Rust",
  "Scala",
  "TypeScript",
  "JavaScript",
];
const PAGE_LANGUAGES = ["HTML", "CSS", "Vue", "Svelte", "Astro"];
/** Languages that build and start code. */
const SIDE_LANGUAGES = ["Make", "CMake", "Starlark", "Dockerfile", "Shell", "PowerShell"];
/** Languages that describe machines and services; a project in them is called "Infrastructure". */
const INFRASTRUCTURE = ["Terraform"];
const LARGE = 100_000;
/** With this many lines of prose for each line of code, and no tests, a project is documentation. */
const PROSE_TO_CODE = 4;

/**
 * A team for the project: a lead, one agent for each field it really has, and a tester. Shipped code decides, not the languages
 * of tests, examples and documentation.
 */
export function suggestRoster(
  findings: ProjectFacts,
  frameworks: readonly Framework[],
  shipped: readonly LanguageShare[],
): SuggestedAgent[] {
  const main =
    shipped.find(({ name }) => !PAGE_LANGUAGES.includes(name) && !SIDE_LANGUAGES.includes(name)) ??
    shipped.find(({ name }) => !PAGE_LANGUAGES.includes(name)) ??
    shipped[0];
  const isInfrastructure = main !== undefined && INFRASTRUCTURE.includes(main.name);
  const language = isInfrastructure ? "Infrastructure" : (main?.name ?? "Software");
  const of = (area: Area) => frameworks.filter((one) => one.area === area).map(({ label }) => label);
  const specialists = [
    frontend(shipped, of("frontend")),
    backend(shipped, of("backend")),
    ...field(of("mobile"), "Mobile Engineer", "the mobile app: its screens, navigation, device features and store builds"),
    ...field(of("desktop"), "Desktop Engineer", "the desktop app: its windows, packaging and updates"),
    data(shipped, of("data")),
    ...field(of("learning"), "Machine Learning Engineer", "models, training data, notebooks, evaluation and inference"),
  ].filter((one) => one !== undefined);
  if (isDocumentation(findings, shipped))
    return [editor(findings), ...specialists, ...writer(findings, { always: true }), ...operations(findings)];
  const core = specialists.length > 0 ? [] : [coreEngineer(findings, language)];
  return [
    lead(findings, language),
    ...core,
    ...specialists,
    ...(isInfrastructure && !isTested(findings) ? [] : [tester(findings, language)]),
    ...operations(findings),
    ...writer(findings),
  ];
}

/** Whether a project is prose whose code only illustrates it or builds its pages; nothing of it is tested. */
function isDocumentation(findings: ProjectFacts, shipped: readonly LanguageShare[]): boolean {
  const { documents } = findings;
  if (isTested(findings)) return false;
  const code = shipped.filter(({ name }) => !PAGE_LANGUAGES.includes(name) && !SIDE_LANGUAGES.includes(name));
  const lines = code.reduce((sum, one) => sum + one.lines, 0);
  return proseIn(documents) > lines * PROSE_TO_CODE;
}

const isTested = ({ testFiles, testTools, commands }: ProjectFacts) =>
  testFiles > 0 || testTools.length > 0 || commands.some(({ purpose, isGuess }) => purpose === "test" && !isGuess);

function editor({ documents }: ProjectFacts): SuggestedAgent {
  return {
    roleTitle: "Lead Documentation Editor",
    charter: "Structure, terms and style of the documentation, what belongs in it, and review of every change.",
    modelTier: "high",
    reason: `${proseIn(documents)} lines of documentation and hardly any code`,
  };
}

const proseIn = (documents: ProjectFacts["documents"]) =>
  documents
    .filter(({ name }) => ["Markdown", "reStructuredText", "AsciiDoc"].includes(name))
    .reduce((sum, one) => sum + one.lines, 0);

function lead({ size, packages, monorepo }: ProjectFacts, language: string): SuggestedAgent {
  const own = new Set(packages.filter(({ path, name }) => name !== "" && !isExampleOrDocs(path)).map(({ path }) => path));
  const parts = own.size > 1 ? ` in ${own.size} packages` : "";
  return {
    roleTitle: `Lead ${language} Architect`,
    charter: `Overall structure, boundaries between modules, technical decisions, refactoring across ${monorepo ? "packages" : "the code"} and code review.`,
    modelTier: "high",
    reason: `${size.lines} lines of code${parts}${monorepo ? ` (${monorepo})` : ""}`,
  };
}

function frontend(languages: readonly LanguageShare[], found: string[]): SuggestedAgent | undefined {
  const pages = languages.filter(({ name, share }) => PAGE_LANGUAGES.includes(name) && share >= 0.1);
  if (found.length === 0 && pages.length === 0) return undefined;
  const first = found.find((label) => label !== "Tailwind");
  return {
    roleTitle: `${first ? `${first} ` : ""}Frontend Engineer`,
    charter: "Pages, components, forms, styling, accessibility and state in the browser.",
    modelTier: "medium",
    reason:
      found.length > 0
        ? `uses ${found.join(", ")}`
        : pages.map(({ name, share }) => `${Math.round(share * 100)} % ${name}`).join(", "),
  };
}

function backend(languages: readonly LanguageShare[], found: string[]): SuggestedAgent | undefined {
  if (found.length === 0) return undefined;
  const language = languages.find(({ name }) => SERVER_LANGUAGES.includes(name))?.name;
  return {
    roleTitle: `${language ? `${language} ` : ""}Backend Engineer`,
    charter: "Server code: API endpoints, business rules, authentication, background jobs and errors.",
    modelTier: "medium",
    reason: `uses ${found.join(", ")}`,
  };
}

function data(languages: readonly LanguageShare[], found: string[]): SuggestedAgent | undefined {
  const sql = languages.find(({ name, share }) => name === "SQL" && share >= 0.05);
  if (found.length === 0 && !sql) return undefined;
  return {
    roleTitle: "Database Engineer",
    charter: "Database schema, migrations, queries, indexes and the safety of stored data.",
    modelTier: "medium",
    reason: found.length > 0 ? `uses ${found.join(", ")}` : `${Math.round((sql?.share ?? 0) * 100)} % SQL`,
  };
}

function field(found: readonly string[], roleTitle: string, what: string): SuggestedAgent[] {
  return found.length === 0
    ? []
    : [{ roleTitle, charter: `Owns ${what}.`, modelTier: "medium", reason: `uses ${found.join(", ")}` }];
}

function coreEngineer({ languages }: ProjectFacts, language: string): SuggestedAgent {
  const isIt = (name: string) => name === language || (language === "Infrastructure" && INFRASTRUCTURE.includes(name));
  const share = languages.find(({ name }) => isIt(name))?.share;
  return {
    roleTitle: `${language} Engineer`,
    charter: "Features and fixes in the core of the code, its public interface and its error messages.",
    modelTier: "medium",
    reason: share === undefined ? "no language stands out yet" : `${Math.round(share * 100)} % ${language}`,
  };
}

function tester(findings: ProjectFacts, language: string): SuggestedAgent {
  const command = findings.commands.find(({ purpose }) => purpose === "test");
  const runs = command ? `; ${command.isGuess ? "probably runs" : "runs"} "${command.command}"` : "";
  return {
    roleTitle: "Test Lead",
    charter: `Unit, integration and end-to-end tests, coverage, flaky tests${runs}.`,
    modelTier: "medium",
    reason: describeTests(findings, command) ?? `no tests were found for the ${language} code yet`,
  };
}

/** What is known about the tests; undefined if there is no sign of any. */
function describeTests({ testTools, testFiles }: ProjectFacts, command: ProjectCommand | undefined): string | undefined {
  if (testTools.length > 0) return `tests with ${testTools.join(", ")}`;
  if (command && !command.isGuess) return `tested by "${command.command}"`;
  const seen = testFiles > 0 ? `${testFiles} test ${testFiles === 1 ? "file" : "files"}` : undefined;
  if (command) return `${seen ?? "whether there are tests is not known"}; "${command.command}" is a guess at how they are run`;
  return seen && `${seen}, but no command that runs them was found`;
}

function operations({ ci, containers }: ProjectFacts): SuggestedAgent[] {
  const found = [...ci, ...containers];
  if (found.length === 0) return [];
  const charter = "Continuous integration workflows, container images, deployment, releases and build speed.";
  return [
    {
      roleTitle: ci.length > 0 ? "CI/CD Engineer" : "DevOps Engineer",
      charter,
      modelTier: "low",
      reason: `has ${found.join(", ")}`,
    },
  ];
}

function writer({ size, documents }: ProjectFacts, { always = false } = {}): SuggestedAgent[] {
  const lines = proseIn(documents);
  if (lines < 2_000 && size.lines < LARGE && !always) return [];
  const charter = "Documentation, guides, the README and the changelog, kept true to the code.";
  return [
    {
      roleTitle: "Technical Writer",
      charter,
      modelTier: "low",
      reason: `${lines} lines of documentation for ${size.lines} of code`,
    },
  ];
}
