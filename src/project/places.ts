import type { PackageManifest } from "./manifests/manifest.ts";

/** Shows how a project is used, or how fast it is. */
const EXAMPLE_OR_DOCS =
  /(?:^|\/)(?:examples?|samples?|demos?|docs?|documentation|tutorials?|guides?|playgrounds?|sandbox|benchmarks?|bench|benches|(?:example|sample|demo)[-_][^/]+)(?:\/|$)/i;
const TESTED = /(?:^|\/)(?:tests?|__tests__|specs?|e2e|integration[-_]tests?|unittests?)(?:\/|$)/i;
/** Below these, a folder called samples or tests is named after what the code is about. */
const SOURCE = /(?:^|\/)(?:src|lib|app|source)\//;
const SHIPPED = /(?:^|\/)src\/main\//;

/** Packages that only build documentation pages, and the programs they bring. */
const GENERATORS = ["@docusaurus/core", "vitepress", "vuepress", "nextra", "@astrojs/starlight"];
const GENERATES = /\b(?:docusaurus|vitepress|vuepress) build\b/;

/** Whether a package's folder is among examples, documentation or benchmarks. */
export const isExampleOrDocs = (folder: string): boolean => EXAMPLE_OR_DOCS.test(folder);

/** Whether a folder is for those who work on the project. */
export const isForDevelopers = (folder: string): boolean =>
  isExampleOrDocs(folder) || /(?:^|\/)(?:tools?|scripts?|hack|ci|\.github)(?:\/|$)/.test(folder);

/** Whether a path is outside what a project ships: among examples, documentation, benchmarks or tests. */
export const isUnshipped = (path: string): boolean =>
  EXAMPLE_OR_DOCS.test(before(path, SOURCE)) || TESTED.test(before(path, SHIPPED));

function before(path: string, part: RegExp): string {
  const at = path.search(part);
  return at < 0 ? path : path.slice(0, at);
}

/** Whether a package is only documentation: building it creates its pages. */
export const isDocumentation = ({ dependencies, scripts }: PackageManifest): boolean =>
  GENERATORS.some((name) => dependencies.has(name)) || GENERATES.test(scripts.get("build") ?? "");
