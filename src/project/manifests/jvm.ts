import type { ManifestFacts } from "./manifest.ts";

export function readMaven(text: string): ManifestFacts {
  const own = ["parent", "dependencies", "dependencyManagement", "build", "profiles", "reporting"].reduce(withoutElement, text);
  const used = ["dependencyManagement", "pluginManagement", "plugins", "exclusions"].reduce(withoutElement, text);
  const needed = elementsOf(used, "dependency").map((element) => ({
    name: artifactOf(element),
    isTest: /<scope>\s*test\s*<\/scope>/.test(element),
  }));
  const names = (isTest: boolean) => needed.filter((one) => one.isTest === isTest).map(({ name }) => name);
  return {
    name: artifactOf(own),
    dependencies: new Set([...elementsOf(text, "parent").map(artifactOf), ...names(false)]),
    development: new Set([...names(true), ...mavenPlugins(text).map(artifactOf)]),
    workspace: /<modules>/.test(text) ? "Maven modules" : undefined,
  };
}

/** The plugins that every build of a pom.xml runs or that can be called by name. */
export const mavenPlugins = (text: string): string[] =>
  elementsOf(["pluginManagement", "reporting", "profiles"].reduce(withoutElement, text), "plugin");

/** What Maven does if it is given no goal. */
export const defaultGoal = (pom: string): string => {
  const goal = elementsOf(withoutElement(pom.slice(0, 500_000), "profiles"), "defaultGoal")[0]?.trim() ?? "";
  return /^[\w:. -]{1,300}$/.test(goal) ? goal : "";
};

export function elementsOf(text: string, name: string): string[] {
  const end = `</${name}>`;
  return text
    .split(`<${name}>`)
    .slice(1)
    .map((part) => (part.includes(end) ? part.slice(0, part.indexOf(end)) : part));
}

export const artifactOf = (element: string): string => /<artifactId>\s*([^<\s]+)/.exec(element)?.[1] ?? "";

function withoutElement(text: string, name: string): string {
  const [before = "", ...rest] = text.split(`<${name}>`);
  return before + rest.map((part) => part.slice(part.indexOf(`</${name}>`) + 1)).join("");
}

/** Dependencies in a configuration of such a name are not shipped. */
const NOT_SHIPPED = /test|jmh|^(?:developmentOnly|classpath|checkstyle|annotationProcessor|kapt|ksp|detektPlugins)$/i;

export function readGradle(text: string): ManifestFacts {
  const found = { dependencies: new Set<string>(), development: new Set<string>() };
  for (const line of text.split("\n")) {
    // Such a plugin is only declared for the projects below.
    if (/\bapply\s+false\b/.test(line)) continue;
    const configuration = /^[ \t]*["']?(\w+)/.exec(line)?.[1] ?? "";
    const into = NOT_SHIPPED.test(configuration) ? found.development : found.dependencies;
    for (const match of line.matchAll(/["']([\w.-]+):([\w.-]+)(?::[^"']*)?["']/g)) into.add(match[1]!).add(match[2]!);
    for (const match of line.matchAll(/"([\w.-]+)"\s*%%?\s*"([\w.-]+)"/g))
      (/%\s*(?:Test|"test")/.test(line) ? found.development : found.dependencies).add(match[1]!).add(match[2]!);
    for (const match of line.matchAll(/\b(?:id|plugin:?)\s*(?:\(\s*)?["']([\w.-]+)["']/g)) found.dependencies.add(match[1]!);
  }
  for (const word of barePlugins(text)) found.dependencies.add(word);
  return { ...found, name: /^[ \t]*name\s*:=\s*"([^"\n]+)"/m.exec(text)?.[1] ?? "" };
}

/** In the Kotlin DSL, Gradle's own plugins are bare words. */
function barePlugins(text: string): string[] {
  const [, block = ""] = text.split(/^plugins\s*\{/m);
  return [...(block.split("}")[0] ?? "").matchAll(/(?:^|[;\n])[ \t]*`?([a-z][a-z-]*)`?[ \t]*(?=[;\n]|$)/g)].map(
    (match) => match[1]!,
  );
}

export function readGradleSettings(text: string): ManifestFacts {
  const name = /rootProject\.name\s*=\s*["']([^"']+)/.exec(text)?.[1] ?? "";
  return { name, workspace: /\binclude\s*(?:\(\s*)?["']/.test(text) ? "Gradle projects" : undefined };
}
