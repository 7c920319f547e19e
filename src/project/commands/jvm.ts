import { artifactOf, elementsOf, mavenPlugins } from "../manifests/jvm.ts";
import { uses } from "../manifests/manifest.ts";
import { type CommandFinder, certainIf, type Found, isWithin, type Scope, showsTests, when } from "./scope.ts";

/** Maven's plugins that judge code: the failing goal, what must run before it, and its default phase. */
const JUDGES: readonly { plugin: string; goal: string; before?: string; check: string; phase: string }[] = [
  { plugin: "maven-checkstyle-plugin", goal: "checkstyle:check", check: "check", phase: "verify" },
  { plugin: "maven-pmd-plugin", goal: "pmd:check", check: "check", phase: "verify" },
  { plugin: "spotbugs-maven-plugin", goal: "spotbugs:check", before: "compile", check: "check", phase: "verify" },
  { plugin: "spotless-maven-plugin", goal: "spotless:check", check: "check", phase: "verify" },
  { plugin: "spring-javaformat-maven-plugin", goal: "spring-javaformat:validate", check: "validate", phase: "validate" },
];
const PHASES = ["validate", "process-sources", "compile", "process-classes", "test-compile", "package", "verify"];

export const ofMaven: CommandFinder = (scope) => {
  const mvn = scope.view.has("mvnw") ? "./mvnw -B" : "mvn -B";
  return [
    certainIf(isTestedJvm(scope), "test", `${mvn} test`),
    ...judgedByMaven(scope.manifest.text, mvn),
    ["build", `${mvn} package -DskipTests`],
  ];
};

/** A plugin bound to a phase has its settings there, so the phase is run; an unbound one runs by its goal. */
function judgedByMaven(pom: string, mvn: string): Found[] {
  const plugins = mavenPlugins(pom.slice(0, 500_000));
  const asked = JUDGES.flatMap(({ plugin, goal, before, check, phase }): { goals: string[]; phase: string | undefined }[] => {
    const element = plugins.find((each) => artifactOf(each) === plugin);
    if (element === undefined) return [];
    const bound = elementsOf(element, "execution").find((each) => elementsOf(each, "goal").some((one) => one.trim() === check));
    if (!bound) return [{ goals: [...(before ? [before] : []), goal], phase: undefined }];
    const named = elementsOf(bound, "phase")[0]?.trim() ?? "";
    return [{ goals: [], phase: PHASES.includes(named) ? named : phase }];
  });
  const last = PHASES.findLast((phase) => asked.some((one) => one.phase === phase));
  return [
    ...when(last !== undefined, "lint", `${mvn} ${last === "validate" ? last : `${last} -DskipTests`}`),
    ...asked.filter(({ phase }) => phase === undefined).flatMap(({ goals }) => when(true, "lint", `${mvn} ${goals.join(" ")}`)),
  ];
}

/** Gradle's plugins that judge code, and their tasks. */
const TASKS: readonly [plugin: string, task: string][] = [
  ["com.diffplug.spotless", "spotlessCheck"],
  ["checkstyle", "checkstyleMain"],
  ["pmd", "pmdMain"],
  ["com.github.spotbugs", "spotbugsMain"],
  ["io.gitlab.arturbosch.detekt", "detekt"],
  ["org.jlleitschuh.gradle.ktlint", "ktlintCheck"],
];

export const ofGradle: CommandFinder = (scope) => {
  const { manifest, view } = scope;
  const gradle = view.has("gradlew") && manifest.folder === "." ? "./gradlew" : "gradle";
  const below = view.manifests.filter(({ kind, folder }) => kind === "gradle" && isWithin(folder, manifest.folder));
  // A library in another language often brings a build file for those who use it from Android.
  const isForOthers = manifest.folder !== "." && below.length === 1 && !view.hasFolder(`${manifest.folder}/src`);
  if (isForOthers) return [];
  return [
    certainIf(isTestedJvm(scope), "test", `${gradle} test`),
    ...TASKS.flatMap(([plugin, task]) =>
      when(
        below.some((one) => uses(one, plugin)),
        "lint",
        `${gradle} ${task}`,
      ),
    ),
    ["build", `${gradle} assemble`],
  ];
};

const isTestedJvm = (scope: Scope) => showsTests(scope, /\.(?:java|kt|scala|groovy)$/);
