import type { PackageManifest } from "./manifests/manifest.ts";

/** Shows how a project is used, or how fast it is. */
const SHOWN =
  /(?:^|\/)(?:examples?|samples?|demos?|docs?|documentation|tutorials?|guides?|playgrounds?|sandbox|benchmarks?|bench|benches|(?:example|sample|demo)[-_][^/]+)(?:\/|$)/i;
const TESTED = /(?:^|\/)(?:tests?|__tests__|specs?|e2e|integration[-_]tests?|unittests?)(?:\/|$)/i;
/** Below these a folder is named for what the code is about, be it samples or tests. */
const SOURCE = /(?:^|\/)(?:src|lib|app|source)\//;
const SHIPPED = /(?:^|\/)src\/main\//;

/** Packages that do nothing but make pages of documentation, and the programs they bring. */
const GENERATORS = ["@docusaurus/core", "vitepress", "vuepress", "nextra", "@astrojs/starlight"];
const GENERATES = /\b(?:docusaurus|vitepress|vuepress) build\b/;

/** Whether a folder with a package lies among examples, documentation or benchmarks. */
export const isShown = (folder: string): boolean => SHOWN.test(folder);

/** Whether a folder is there for those who work on the project. */
export const isAid = (folder: string): boolean =>
  isShown(folder) || /(?:^|\/)(?:tools?|scripts?|hack|ci|\.github)(?:\/|$)/.test(folder);

/** Whether a path lies beside what a project ships: among examples, documentation, benchmarks or tests. */
export const isBeside = (path: string): boolean => SHOWN.test(before(path, SOURCE)) || TESTED.test(before(path, SHIPPED));

function before(path: string, part: RegExp): string {
  const at = path.search(part);
  return at < 0 ? path : path.slice(0, at);
}

/** Whether a package is there for documentation alone: to build it is to make its pages. */
export const isDocumentation = ({ dependencies, scripts }: PackageManifest): boolean =>
  GENERATORS.some((name) => dependencies.has(name)) || GENERATES.test(scripts.get("build") ?? "");
