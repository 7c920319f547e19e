/** Shows how a project is used, or how fast it is. */
const SHOWN =
  /(?:^|\/)(?:examples?|samples?|demos?|docs?|documentation|tutorials?|guides?|playgrounds?|sandbox|benchmarks?|bench|benches)(?:\/|$)/i;
const TESTED = /(?:^|\/)(?:tests?|__tests__|specs?|e2e|integration[-_]tests?|unittests?)(?:\/|$)/i;

/** Packages that do nothing but make pages of documentation. */
const DOCUMENTATION = ["@docusaurus/core", "vitepress", "vuepress", "nextra", "@astrojs/starlight", "mkdocs", "sphinx"];

/** Whether a path lies among examples, documentation or benchmarks. */
export const isShown = (path: string): boolean => SHOWN.test(path);

/** Whether a path lies beside what a project ships: among examples, documentation, benchmarks or tests. */
export const isBeside = (path: string): boolean => SHOWN.test(path) || TESTED.test(path);

/** Whether a package is there for documentation alone. */
export const isDocumentation = (dependencies: ReadonlySet<string>): boolean =>
  DOCUMENTATION.some((name) => dependencies.has(name));
