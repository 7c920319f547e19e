import type { Breath } from "../lib/breath.ts";

/** Files whose presence says something, besides the manifests. */
const SIGNS: readonly [kind: "ci" | "containers" | "testTools" | "monorepo", label: string, pattern: RegExp][] = [
  ["ci", "GitHub Actions", /^\.github\/workflows\/[^/]+\.ya?ml$/],
  ["ci", "GitLab CI", /^\.gitlab-ci\.yml$/],
  ["ci", "Jenkins", /^Jenkinsfile$/],
  ["ci", "Azure Pipelines", /^\.?azure-pipelines(?:\.[\w-]+)?\.ya?ml$/],
  ["ci", "CircleCI", /^\.circleci\/config\.yml$/],
  ["ci", "Travis CI", /^\.travis\.yml$/],
  ["ci", "AppVeyor", /^\.?appveyor\.yml$/],
  ["ci", "Bitbucket Pipelines", /^bitbucket-pipelines\.yml$/],
  ["ci", "Buildkite", /^\.buildkite\/.+\.ya?ml$/],
  ["ci", "Drone", /^\.drone\.yml$/],
  ["ci", "Cirrus CI", /^\.cirrus\.yml$/],
  ["ci", "Woodpecker", /^\.woodpecker(?:\.yml|\/.+)$/],
  ["containers", "Docker", /(?:^|\/)(?:Dockerfile(?:\.[\w.-]+)?|[\w.-]+\.dockerfile|Containerfile)$/i],
  ["containers", "Docker Compose", /(?:^|\/)(?:docker-)?compose(?:\.[\w-]+)*\.ya?ml$/],
  ["containers", "Helm", /(?:^|\/)Chart\.yaml$/],
  ["containers", "Kustomize", /(?:^|\/)kustomization\.ya?ml$/],
  ["containers", "Dev Container", /^\.devcontainer(?:\/.*)?(?:\.json|\/devcontainer\.json)$/],
  ["containers", "Terraform", /\.tf$/],
  ["testTools", "Jest", /(?:^|\/)jest\.config\.\w+$/],
  ["testTools", "Vitest", /(?:^|\/)vitest\.(?:config|workspace)\.\w+$/],
  ["testTools", "Playwright", /(?:^|\/)playwright\.config\.\w+$/],
  ["testTools", "Cypress", /(?:^|\/)cypress\.(?:config\.\w+|json)$/],
  ["testTools", "Mocha", /(?:^|\/)\.mocharc(?:\.\w+)?$/],
  ["testTools", "pytest", /(?:^|\/)(?:pytest\.ini|conftest\.py)$/],
  ["testTools", "tox", /(?:^|\/)tox\.ini$/],
  ["testTools", "nox", /(?:^|\/)noxfile\.py$/],
  ["testTools", "RSpec", /(?:^|\/)\.rspec$/],
  ["testTools", "PHPUnit", /(?:^|\/)phpunit(?:\.dist)?\.xml(?:\.dist)?$/],
  ["testTools", "go test", /_test\.go$/],
  ["testTools", "doctest", /(?:^|\/)doctest\.h(?:pp)?$/],
  ["testTools", "Catch2", /(?:^|\/)catch(?:2|_amalgamated)?\.hpp$/],
  ["testTools", "GoogleTest", /(?:^|\/)gtest\/gtest\.h$/],
  ["monorepo", "pnpm workspaces", /^pnpm-workspace\.yaml$/],
  ["monorepo", "Nx", /^nx\.json$/],
  ["monorepo", "Turborepo", /^turbo\.json$/],
  ["monorepo", "Lerna", /^lerna\.json$/],
  ["monorepo", "Go workspace", /^go\.work$/],
];
/** A pattern that covers every sign above, so that most files need one test and not fifty. */
const MAYBE_SIGN =
  /^\.|\.tf$|_test\.go$|\.config\.\w+$|(?:^|\/)(?:jenkinsfile|chart\.yaml|containerfile|[^/]*docker|[^/]*compose|kustomiz|conftest|noxfile|pytest|phpunit|cypress|vitest|catch|doctest\.h|gtest\.h|tox\.ini|\.mocharc|\.rspec)|^[^/]+\.(?:ya?ml|json|work|bazel)$/i;

export type Signs = Record<(typeof SIGNS)[number][0], string[]>;

/** Whether a file is worth testing for each sign. */
export const maybeSign = (file: string): boolean => MAYBE_SIGN.test(file);

export async function signsAmong(files: readonly string[], breathe: Breath): Promise<Signs> {
  const found = new Set<(typeof SIGNS)[number]>();
  for (const file of files) {
    for (const sign of SIGNS) if (!found.has(sign) && sign[2].test(file)) found.add(sign);
    const pause = breathe();
    if (pause) await pause;
  }
  const labels = (kind: keyof Signs) => SIGNS.filter((sign) => sign[0] === kind && found.has(sign)).map((sign) => sign[1]);
  return { ci: labels("ci"), containers: labels("containers"), testTools: labels("testTools"), monorepo: labels("monorepo") };
}
