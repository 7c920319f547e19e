import type { ProjectFacts } from "../project/analyze.ts";
import type { Area, Framework } from "../project/frameworks.ts";
import type { SuggestedAgent } from "../protocol/analysis.ts";

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
const LARGE = 100_000;

/** A team that fits what was found: a lead, one agent for each field the project really has, and somebody who tests. */
export function suggestRoster(findings: ProjectFacts, frameworks: readonly Framework[]): SuggestedAgent[] {
  const main = findings.languages.find(({ name }) => !PAGE_LANGUAGES.includes(name)) ?? findings.languages[0];
  const language = main?.name ?? "Software";
  const of = (area: Area) => frameworks.filter((one) => one.area === area).map(({ label }) => label);
  const specialists = [
    frontend(findings, of("frontend")),
    backend(findings, of("backend")),
    ...field(of("mobile"), "Mobile Engineer", "the mobile app: its screens, navigation, device features and store builds"),
    ...field(of("desktop"), "Desktop Engineer", "the desktop app: its windows, packaging and updates"),
    data(findings, of("data")),
    ...field(of("learning"), "Machine Learning Engineer", "models, training data, notebooks, evaluation and inference"),
  ].filter((one) => one !== undefined);
  const core = specialists.length > 0 ? [] : [coreEngineer(findings, language)];
  return [
    lead(findings, language),
    ...core,
    ...specialists,
    tester(findings, language),
    ...operations(findings),
    ...writer(findings),
  ];
}

function lead({ size, packages, monorepo }: ProjectFacts, language: string): SuggestedAgent {
  const parts = packages.length > 1 ? ` in ${packages.length} packages` : "";
  return {
    roleTitle: `Lead ${language} Architect`,
    charter: `Overall structure, boundaries between modules, technical decisions, refactoring across ${monorepo ? "packages" : "the code"} and code review.`,
    modelTier: "high",
    reason: `${size.lines} lines of code${parts}${monorepo ? ` (${monorepo})` : ""}`,
  };
}

function frontend({ languages }: ProjectFacts, found: string[]): SuggestedAgent | undefined {
  const pages = languages.filter(({ name, share }) => PAGE_LANGUAGES.includes(name) && share >= 0.1);
  if (found.length === 0 && pages.length === 0) return undefined;
  const first = found.find((label) => !["Vite", "webpack", "Tailwind"].includes(label));
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

function backend({ languages }: ProjectFacts, found: string[]): SuggestedAgent | undefined {
  if (found.length === 0) return undefined;
  const language = languages.find(({ name }) => SERVER_LANGUAGES.includes(name))?.name;
  return {
    roleTitle: `${language ? `${language} ` : ""}Backend Engineer`,
    charter: "Server code: API endpoints, business rules, authentication, background jobs and errors.",
    modelTier: "medium",
    reason: `uses ${found.join(", ")}`,
  };
}

function data({ languages }: ProjectFacts, found: string[]): SuggestedAgent | undefined {
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
  const share = languages.find(({ name }) => name === language)?.share;
  return {
    roleTitle: `${language} Engineer`,
    charter: "Features and fixes in the core of the code, its public interface and its error messages.",
    modelTier: "medium",
    reason: share === undefined ? "no language stands out yet" : `${Math.round(share * 100)} % ${language}`,
  };
}

function tester({ testTools, commands }: ProjectFacts, language: string): SuggestedAgent {
  const command = commands.find(({ purpose }) => purpose === "test");
  return {
    roleTitle: "Test Lead",
    charter: `Unit, integration and end-to-end tests, coverage, flaky tests${command ? `; runs "${command.command}"` : ""}.`,
    modelTier: "medium",
    reason: testTools.length > 0 ? `tests with ${testTools.join(", ")}` : `no tests were found for the ${language} code yet`,
  };
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

function writer({ size, documents }: ProjectFacts): SuggestedAgent[] {
  const prose = documents.filter(({ name }) => ["Markdown", "reStructuredText", "AsciiDoc"].includes(name));
  const lines = prose.reduce((sum, one) => sum + one.lines, 0);
  if (lines < 2_000 && size.lines < LARGE) return [];
  const charter = "Documentation, guides, the README and the changelog, kept true to the code.";
  return [{ roleTitle: "Technical Writer", charter, modelTier: "low", reason: `${lines} lines of documentation` }];
}
